//! The local token: who can read a file in the state directory may change something, by the API or the page.
//!
//! Every process on this machine reaches the API, whoever runs it. A foreign web page cannot send the header with the token, as no answer
//! allows it to (there are no CORS headers). It is another one at each start: a process that took the port while the daemon was down may
//! have been sent the one before.

use crate::io::files::replace_private;
use std::{
    fmt, fs,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

/// The file's name, in the state directory.
pub const TOKEN_FILE: &str = "api.token";

/// The header that has it in a request.
pub const TOKEN_HEADER: &str = "x-nearcrawl-token";

/// Its length in hexadecimal digits.
const DIGITS: usize = 64;

/// The token of a daemon.
#[derive(Clone)]
pub struct Token {
    secret: Arc<str>,
    file: Arc<Path>,
}

impl Token {
    /// A new one, in this directory in place of that of the start before.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(directory: &Path) -> io::Result<Token> {
        let file: Arc<Path> = directory.join(TOKEN_FILE).into();
        let mut random = [0; DIGITS / 2];
        fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        replace_private(&file, &file.with_extension("new"), format!("{secret}\n").as_bytes())?;
        Ok(Token { secret: secret.into(), file })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether this is the token. How long that takes does not depend on how much of it is right.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let secret = self.secret.as_bytes();
        given.len() == secret.len() && given.iter().zip(secret).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token of {}", self.file.display())
    }
}

/// Reads a token. Only a file of that name and with nothing else in it is read: a program that poses as a daemon shall not have another one's
/// content sent to it.
///
/// # Errors
/// The file cannot be read, or is no token.
pub fn read_token(file: &Path) -> io::Result<String> {
    let other = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if file.file_name().is_none_or(|name| name != TOKEN_FILE) {
        return Err(other("this is no file of a token"));
    }
    let mut text = String::new();
    fs::File::open(file)?.take(DIGITS as u64 + 2).read_to_string(&mut text)?;
    let token = text.trim_end();
    if token.len() == DIGITS && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(token.to_owned())
    } else {
        Err(other("there is no token in it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_start_makes_a_new_one_that_only_its_user_reads() {
        let directory = tempfile::tempdir().unwrap();
        let first = Token::begin(directory.path()).unwrap();
        let secret = read_token(first.file()).unwrap();
        assert!(first.is(secret.as_bytes()) && !first.is(b"") && !first.is(&[b'0'; DIGITS]));
        fs::set_permissions(first.file(), fs::Permissions::from_mode(0o644)).unwrap();
        let again = Token::begin(directory.path()).unwrap();
        assert!(!again.is(secret.as_bytes()), "whoever was sent it while no daemon ran can do nothing with it");
        assert!(again.is(read_token(again.file()).unwrap().as_bytes()));
        assert_eq!(fs::metadata(again.file()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{again:?}").contains(&*again.secret), "it is in no log");
    }

    #[test]
    fn nothing_but_a_token_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            read_token(&path)
        };
        assert!(write("id_ed25519", &"a".repeat(DIGITS)).is_err(), "another name");
        assert!(write(TOKEN_FILE, "-----BEGIN PRIVATE KEY-----").is_err() && write(TOKEN_FILE, &"a".repeat(DIGITS + 1)).is_err());
        assert!(write(TOKEN_FILE, &"a".repeat(DIGITS)).is_ok());
    }
}
