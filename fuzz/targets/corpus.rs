//! Corpora of the fuzz targets, as text files.
//!
//! Each target has one file, an input a line, escaped as in a Rust byte string: texts can be read, and a found input is added by hand.
//!
//! Lines that begin with `#` are comments. Above the line `# Found by the fuzzer:` stands what people wrote, below what
//! `make fuzz` found.

/// One function that is given foreign bytes, and its inputs.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name; the file of its inputs has the same.
    pub name: &'static str,
    /// Panics if anything is wrong.
    pub run: fn(&[u8]),
    /// The file of its inputs.
    pub corpus: &'static str,
}

/// The inputs of a corpus with the numbers of their lines.
pub fn inputs(corpus: &str) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let numbered = corpus.lines().enumerate().map(|(number, line)| (number + 1, line));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| (number, unescaped(line)))
}

/// A line of a corpus. The inverse of `escaped`.
fn unescaped(line: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        let escape = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escape {
            None => byte,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).expect("two hexadecimal digits after \\x");
                (digit() << 4 | digit()) as u8
            }
            Some(itself) => itself,
        });
    }
    bytes
}

/// Runs every input of every target, and the empty one. Says which one it was if it panics.
pub fn replay(targets: &[Target]) {
    struct Running(&'static str, usize);
    impl Drop for Running {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was line {} of the corpus of {}", self.1, self.0);
            }
        }
    }
    assert!(!targets.is_empty());
    for target in targets {
        let count = inputs(target.corpus).count();
        assert!(count >= 3, "the corpus of {} has {count} inputs", target.name);
        for (line, input) in std::iter::once((0, Vec::new())).chain(inputs(target.corpus)) {
            let running = Running(target.name, line);
            (target.run)(&input);
            drop(running);
        }
    }
}

/// Declares `TARGETS`: the folder of the corpora, then each function.
#[macro_export]
macro_rules! targets {
    ($folder:literal: $($name:ident),+ $(,)?) => {
        /// The targets of this crate.
        pub const TARGETS: &[$crate::corpus::Target] = &[$($crate::corpus::Target {
            name: stringify!($name),
            run: $name,
            corpus: include_str!(concat!("../corpus/", $folder, "/", stringify!($name), ".txt")),
        }),+];
    };
}
