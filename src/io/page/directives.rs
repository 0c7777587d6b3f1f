//! What does a page or an `X-Robots-Tag` header ask of robots?

/// The name by which robots.txt, meta elements and headers address this crawler.
pub const PRODUCT_TOKEN: &str = "nearcrawl";

/// What robots are asked not to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
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

/// Reads the values of all `X-Robots-Tag` headers. A value may begin with the name of the robot it is for:
/// `otherbot: noindex` is not for us.
pub fn header_directives<'a>(values: impl IntoIterator<Item = &'a str>) -> Directives {
    let mut directives = Directives::default();
    for value in values {
        let mut for_us = true;
        for part in value.split(',') {
            let list = match part.split_once(':') {
                // `unavailable_after: date` and `max-snippet: 5` are directives with values, not robots.
                Some((name, _))
                    if ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
                        .contains(&name.trim().to_ascii_lowercase().as_str()) =>
                {
                    ""
                }
                Some((name, rest)) => {
                    for_us = name.trim().eq_ignore_ascii_case(PRODUCT_TOKEN) || name.trim() == "*";
                    rest
                }
                None => part,
            };
            if for_us {
                directives.add_list(list);
            }
        }
    }
    directives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_for_us_alone() {
        let table: [(&[&str], bool, bool); 9] = [
            (&["noindex"], true, false),
            (&["NoFollow , noarchive"], false, true),
            (&["none"], true, true),
            (&["otherbot: noindex, nofollow"], false, false),
            (&["otherbot: noindex", "nofollow"], false, true),
            (&["NearCrawl: noindex"], true, false),
            (&["otherbot: noindex, nearcrawl: nofollow"], false, true),
            (&["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], true, false),
            (&["", ",,", "index, follow"], false, false),
        ];
        for (values, no_index, no_follow) in table {
            assert_eq!(header_directives(values.iter().copied()), Directives { no_index, no_follow }, "{values:?}");
        }
    }
}
