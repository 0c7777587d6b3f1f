//! Parameters of a typical web: a dozen numbers, each with its reason.
//!
//! They were chosen so that a crawl by depth looks like the one of the paper (Nakahira, Hoshino, Mikami, WWW 2008, figures 1 to 3), before
//! any other rule was tried on them; `lab/depth/tests.rs` asserts that.

/// The numbers that make a web.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Sections of a site, on average. The front page leads to most of them.
    pub sections: f64,
    /// Pages of a section at least; most have few …
    pub section_pages: f64,
    /// … and some very many: the exponent of the Pareto tail. Below 1 the largest sections together have most of the pages.
    pub tail: f64,
    /// How deep sections are filed: nobody sorts pages into more folders than that. This is where the curve of pages bends.
    pub shelves: f64,
    /// The share of sections to which the front page has no link, only a page further down: these end deeper than the others.
    pub hidden: f64,
    /// The share of sites with archives, whose lists lead from one to the next: what lies beyond the deepest shelf lies there.
    pub archives: f64,
    /// How many lists an archive has: this times an exponential draw. Some do not end before level 20.
    pub lists: f64,
    /// Pages that the lists of one level of a site name, all its archives together.
    pub list_pages: f64,
    /// Links to other sites on a page near the front, on average.
    pub outward: f64,
    /// How unevenly sections link outward: at 6 a fifth of the sections has four fifths of the links, as is usual for such things.
    pub uneven: f64,
    /// By how many levels down outward links become 2.7 times as rare: pages near the top present the world, those below the site itself.
    pub fade: f64,
    /// Outward links of an archive's page, as a share of `outward`: its pages are made by a program, from one's own data.
    pub archive_outward: f64,
    /// The level at which half of the outward links lead to hosts that nobody else names; above it fewer, below it more.
    pub lonely: f64,
    /// The share of outward links that lead to a host which the site names again and again.
    pub habit: f64,
    /// How many popular hosts there are; the n-th is named in proportion to 1/n (Zipf).
    pub popular: f64,
    /// The share of sections with a calendar without end, of which every page of the section names another day.
    pub calendars: f64,
    /// The share of sections that live under a name of their own (`shop.museum.ke`).
    pub subdomains: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            sections: 4.0,
            section_pages: 1.5,
            tail: 0.8,
            shelves: 7.0,
            hidden: 0.3,
            archives: 0.02,
            lists: 14.0,
            list_pages: 240.0,
            outward: 0.5,
            uneven: 6.0,
            fade: 4.2,
            archive_outward: 0.003,
            lonely: 4.0,
            habit: 0.3,
            popular: 50_000.0,
            calendars: 0.1,
            subdomains: 0.05,
        }
    }
}

impl Shape {
    /// Every number by its name, to be read and to be changed.
    pub fn numbers(&mut self) -> [(&'static str, &mut f64); 17] {
        [
            ("sections", &mut self.sections),
            ("section-pages", &mut self.section_pages),
            ("tail", &mut self.tail),
            ("shelves", &mut self.shelves),
            ("hidden", &mut self.hidden),
            ("archives", &mut self.archives),
            ("lists", &mut self.lists),
            ("list-pages", &mut self.list_pages),
            ("outward", &mut self.outward),
            ("uneven", &mut self.uneven),
            ("fade", &mut self.fade),
            ("archive-outward", &mut self.archive_outward),
            ("lonely", &mut self.lonely),
            ("habit", &mut self.habit),
            ("popular", &mut self.popular),
            ("calendars", &mut self.calendars),
            ("subdomains", &mut self.subdomains),
        ]
    }
}
