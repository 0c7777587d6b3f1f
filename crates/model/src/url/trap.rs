//! Recognises paths that look like spider traps: endless paths are deep, or they repeat themselves.

use memchr::memchr_iter;

/// The deepest path that is followed, in segments.
pub(crate) const MAX_SEGMENTS: usize = 20;

/// How often the same segment, or the same run of segments, may stand in a row: `/a/a/` is a path, `/a/a/a/` is a trap.
pub(crate) const MAX_REPEATS: usize = 2;

/// Whether a path (beginning with `/`) is too deep or repeats itself. Linear in the path; compares at most a few hundred
/// segments.
pub(super) fn is_trap(path: &str) -> bool {
    let path = path.as_bytes();
    let mut segments = [&path[..0]; MAX_SEGMENTS];
    let mut count = 0;
    let mut start = 1;
    for end in memchr_iter(b'/', path).skip(1).chain([path.len()]) {
        let segment = &path[start..end];
        start = end + 1;
        // What stands behind the last slash is a segment only if it is something: `/a/` is as deep as `/a`.
        if count == MAX_SEGMENTS {
            if segment.is_empty() {
                break;
            }
            return true;
        }
        segments[count] = segment;
        count += 1;
    }
    let segments = &segments[..count];
    // A period p repeats more than MAX_REPEATS times where MAX_REPEATS * p segments in a row equal the one p before.
    (1..=count / (MAX_REPEATS + 1)).any(|period| {
        let mut equal_in_a_row = 0;
        segments.iter().zip(&segments[period..]).any(|(earlier, later)| {
            equal_in_a_row = if earlier == later { equal_in_a_row + 1 } else { 0 };
            equal_in_a_row == MAX_REPEATS * period
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honest_paths_pass() {
        for path in
            ["/", "/a", "/a/a", "/a/a/", "/a/b/a/b", "/2024/11/11/", "/a/b/a/a/b", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20"]
        {
            assert!(!is_trap(path), "{path} was taken for a trap");
        }
    }

    #[test]
    fn endless_paths_do_not() {
        let deep = "/x1/x2/x3/x4/x5/x6/x7/x8/x9/x10/x11/x12/x13/x14/x15/x16/x17/x18/x19/x20/x21";
        for path in ["/a/a/a", "/a/a/a/", "/x/a/a/a/y", "/a/b/a/b/a/b", "/calendar/a/b/c/a/b/c/a/b/c/", "////", "/a////b", deep] {
            assert!(is_trap(path), "{path} was not taken for a trap");
        }
        assert!(is_trap(&"/a".repeat(100_000)));
        assert!(is_trap(&"/".repeat(100_000)));
    }
}
