//! A headless Chromium, driven over pipes by its DevTools protocol: messages are JSON, each ended by a zero byte.

use serde_json::{Value, json};
use std::{
    os::fd::{AsRawFd, OwnedFd},
    process::Stdio,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
    process::{Child, Command},
};

/// Under which names it is installed.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How long it may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A page in a browser; both end when it is dropped.
pub struct Browser {
    _child: Child,
    to: pipe::Sender,
    from: BufReader<pipe::Receiver>,
    session: String,
    number: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; none if this machine has none.
    pub async fn start() -> Option<Browser> {
        let program = PROGRAMS
            .into_iter()
            .find(|name| std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|path| path.join(name).is_file()))?;
        let profile = tempfile::tempdir().expect("a directory");
        let (commands, to) = ends();
        let (from, answers) = ends();
        let mut command = Command::new(program);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let (read, write) = (commands.as_raw_fd(), answers.as_raw_fd());
        // SAFETY: between fork and exec only dup, dup2 and prctl are called, which are async-signal-safe and touch no memory of ours.
        unsafe {
            command.pre_exec(move || {
                // Copies first: one of them may be 3 or 4 itself. Those copies are closed at exec, 3 and 4 are not.
                let (read, write) = (libc::fcntl(read, libc::F_DUPFD_CLOEXEC, 10), libc::fcntl(write, libc::F_DUPFD_CLOEXEC, 10));
                libc::dup2(read, 3);
                libc::dup2(write, 4);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command.spawn().expect("the browser starts");
        drop((commands, answers));
        let to = pipe::Sender::from_owned_fd(to).expect("a pipe");
        let from = BufReader::new(pipe::Receiver::from_owned_fd(from).expect("a pipe"));
        let mut browser = Browser { _child: child, to, from, session: String::new(), number: 0, _profile: profile };
        let target = browser.tell("Target.createTarget", json!({ "url": "about:blank" })).await["targetId"].clone();
        let attached = browser.tell("Target.attachToTarget", json!({ "targetId": target, "flatten": true })).await;
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// Sends a command and waits for its answer.
    pub async fn tell(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let answered = async {
            self.to.write_all(&bytes).await.expect("the browser listens");
            loop {
                let mut said = Vec::new();
                self.from.read_until(0, &mut said).await.expect("the browser speaks");
                said.pop();
                let said: Value = serde_json::from_slice(&said).expect("the browser speaks JSON");
                if said["id"] == self.number {
                    assert!(said["error"].is_null(), "{method}: {}", said["error"]);
                    return said["result"].clone();
                }
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answered).await.unwrap_or_else(|_| panic!("the browser does not answer {method}"))
    }

    /// Opens an address.
    pub async fn open(&mut self, url: &str) {
        self.tell("Page.navigate", json!({ "url": url })).await;
    }

    /// What an expression comes to in the page.
    pub async fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.tell("Runtime.evaluate", parameters).await;
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub async fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(&format!("Boolean({expression})")).await != true {
            assert!(begun.elapsed() < ANSWER_TIMEOUT, "in vain: {expression}; {}", self.value("document.body?.innerText").await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Presses a key, by its name.
    pub async fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            self.tell("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code })).await;
        }
    }

    /// Makes the page so wide, in CSS pixels, in light or dark colours.
    pub async fn looks(&mut self, width: u32, scheme: &str) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.tell("Emulation.setDeviceMetricsOverride", size).await;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.tell("Emulation.setEmulatedMedia", media).await;
    }

    /// A picture of the whole page, as PNG in base64.
    pub async fn picture(&mut self) -> String {
        let shot = self.tell("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true })).await;
        shot["data"].as_str().expect("a picture").to_owned()
    }
}

/// The ends of a pipe, for reading and for writing.
fn ends() -> (OwnedFd, OwnedFd) {
    let (read, write) = std::io::pipe().expect("a pipe");
    (read.into(), write.into())
}
