//! Reads text files, plain or packed with gzip or zstd, told by their first bytes; and their beginnings, to recognise them by.

use super::snapshot::FileError;
use flate2::bufread::MultiGzDecoder;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::Path,
};

/// How much is read at once, in bytes.
const BUFFER: usize = 64 << 10;

/// How packed files begin: those that are unpacked here, and those that are not.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const FOREIGN: [(&[u8], &str); 3] = [(b"BZh", "bzip2"), (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"), (b"PK\x03\x04", "zip")];

/// A file that is open for reading.
pub struct TextFile {
    head: Vec<u8>,
    rest: Box<dyn BufRead>,
}

impl TextFile {
    /// Its first bytes, unpacked: all of a short file.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// All of it, unpacked, from its beginning.
    pub fn reader(self) -> impl BufRead {
        Cursor::new(self.head).chain(self.rest)
    }
}

/// Opens a file, of whatever name. `watch` may wrap the raw file, to see how much of it was read.
pub fn open<R: Read + 'static>(path: &Path, watch: impl FnOnce(File) -> R) -> Result<TextFile, FileError> {
    let failed = |error| FileError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(failed)?;
    // Opening a directory succeeds; reading it would say so in a less clear way.
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut raw = BufReader::with_capacity(BUFFER, watch(file));
    let start = raw.fill_buf().map_err(failed)?;
    if let Some((_, packer)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, format!("it is packed with {packer}: unpack it first"))));
    }
    let mut rest: Box<dyn BufRead> = if start.starts_with(GZIP) {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw)))
    } else if start.starts_with(ZSTD) {
        Box::new(BufReader::with_capacity(BUFFER, zstd::stream::read::Decoder::with_buffer(raw).map_err(failed)?))
    } else {
        Box::new(raw)
    };
    let mut head = Vec::new();
    rest.by_ref().take(BUFFER as u64).read_to_end(&mut head).map_err(failed)?;
    Ok(TextFile { head, rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::{fs, io::Write};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn text_of(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("misleading.txt.bz2");
        fs::write(&path, bytes).unwrap();
        let file = open(&path, |file| file).map_err(|why| match why {
            FileError::Read { error, .. } => error,
            other => io::Error::other(other.to_string()),
        })?;
        let mut text = Vec::new();
        file.reader().read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn plain_and_packed_text_read_alike_whatever_their_names() {
        let long: Vec<u8> = (0..30_000).flat_map(|n: u32| format!("line {n}\n").into_bytes()).collect();
        for text in [&b""[..], b"one\ntwo\n", &long] {
            assert_eq!(text_of(text).unwrap(), text);
            assert_eq!(text_of(&gzip(text)).unwrap(), text);
            assert_eq!(text_of(&zstd::bulk::compress(text, 1).unwrap()).unwrap(), text);
            // Some writers append one archive to another.
            assert_eq!(text_of(&[gzip(text), gzip(b"more\n")].concat()).unwrap(), [text, b"more\n"].concat());
        }
    }

    #[test]
    fn packed_text_that_was_cut_off_or_damaged_is_an_error() {
        let text: Vec<u8> = (0..30_000).flat_map(|n: u32| format!("line {}\n", n * n).into_bytes()).collect();
        for packed in [gzip(&text), zstd::bulk::compress(&text, 1).unwrap()] {
            assert!(text_of(&packed[..packed.len() / 2]).is_err());
            let mut damaged = packed.clone();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 8].fill(0xa5);
            assert!(text_of(&damaged).is_err() || text_of(&damaged).unwrap() != text);
        }
    }

    #[test]
    fn other_packers_are_named() {
        for (magic, packer) in FOREIGN {
            let error = text_of(&[magic, b"whatever"].concat()).unwrap_err();
            assert!(error.kind() == io::ErrorKind::InvalidData && error.to_string().contains(packer), "{error}");
        }
    }

    #[test]
    fn missing_files_and_directories_are_errors_that_name_the_path() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("missing")] {
            let failure = open(&path, |file| file).err().unwrap();
            assert!(failure.to_string().contains(path.to_str().unwrap()) && failure.kind().is_some(), "{failure}");
        }
    }
}
