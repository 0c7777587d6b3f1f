//! The door: hands over to [`nearcrawl::cli`].

fn main() {}
