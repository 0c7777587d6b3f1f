//! A page's directives to robots.
//!
//! Those of an `X-Robots-Tag` header are read where the head of an answer is.

/// The name by which robots.txt, meta elements and headers address this crawler.
pub(crate) const PRODUCT_TOKEN: &str = "nearcrawl";

/// What robots are asked not to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    /// `noindex` or `none`.
    pub no_index: bool,
    /// `nofollow` or `none`.
    pub no_follow: bool,
}

impl Directives {
    /// Adds what a comma-separated list asks for.
    pub(super) fn add_list(&mut self, list: &str) {
        for word in list.split([',', ';']).flat_map(str::split_ascii_whitespace) {
            let none = word.eq_ignore_ascii_case("none");
            self.no_index |= none || word.eq_ignore_ascii_case("noindex");
            self.no_follow |= none || word.eq_ignore_ascii_case("nofollow");
        }
    }
}
