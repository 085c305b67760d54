//! Headless Chromium over its debugging pipe: JSON messages that end in a zero byte, on file descriptors 3 and 4.
//! The shell that starts it joins those to the child's standard input and output, so no crate and no port is needed.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Maximum response time.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
/// Number of polls for a page to be ready, and the time between them.
const POLLS: u32 = 1200;
const POLL: Duration = Duration::from_millis(50);

/// Returns the path of a browser, if there is one on `PATH`.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    NAMES.iter().find_map(|name| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file()))
}

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    profile: PathBuf,
    next_id: u64,
    /// Messages that are not responses to a call, by arrival.
    events: Vec<Value>,
}

impl Browser {
    /// Starts a browser with a fresh profile in `dir`.
    pub(crate) fn start(program: &Path, dir: &Path) -> Result<Browser, String> {
        let profile = dir.join(format!("profile-{}", std::process::id()));
        std::fs::create_dir_all(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1")
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb"])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let to = child.stdin.take().ok_or("no standard input")?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let (tell, from) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                if message.pop() != Some(0) {
                    break;
                }
                if let Ok(value) = serde_json::from_slice(&message)
                    && tell.send(value).is_err()
                {
                    break;
                }
                message.clear();
            }
        });
        Ok(Browser { child, to, from, profile, next_id: 0, events: Vec::new() })
    }

    fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, String> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).and_then(|()| self.to.flush()).map_err(|error| format!("{method}: {error}"))?;
        loop {
            let answer = self.from.recv_timeout(DEFAULT_TIMEOUT).map_err(|error| format!("{method}: {error}"))?;
            if answer["id"] != json!(id) {
                self.events.push(answer);
            } else if answer["error"].is_null() {
                return Ok(answer["result"].clone());
            } else {
                return Err(format!("{method}: {}", answer["error"]));
            }
        }
    }

    /// Opens a file with the network off, in a window of `size`, and waits until the report is drawn.
    pub(crate) fn open(&mut self, file: &Path, size: (u32, u32), scheme: &str) -> Result<Page<'_>, String> {
        self.events.clear();
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }))?;
        let id = target["targetId"].as_str().ok_or("no target")?.to_owned();
        let attached = self.call(None, "Target.attachToTarget", &json!({ "targetId": id, "flatten": true }))?;
        let session = attached["sessionId"].as_str().ok_or("no session")?.to_owned();
        let url = format!("file://{}", file.display());
        let mut page = Page { browser: self, target: id, session, url };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            page.call(domain, &json!({}))?;
        }
        page.call(
            "Network.emulateNetworkConditions",
            &json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 }),
        )?;
        page.resize(size)?;
        page.scrollbars(Scrollbars::Hidden)?;
        page.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        )?;
        let url = page.url.clone();
        let gone = page.call("Page.navigate", &json!({ "url": url }))?;
        if let Some(error) = gone["errorText"].as_str() {
            return Err(format!("{url}: {error}"));
        }
        page.wait_for("document.readyState === 'complete'")?;
        // A script that does not parse draws nothing: no wait helps.
        page.check("the page's script runs", "!!window.narrowsReport")?;
        page.wait_for("window.narrowsReport.ready")?;
        Ok(page)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let asked = self.call(None, "Browser.close", &json!({}));
        if asked.is_ok() {
            // The pipe ends when the browser has.
            while self.from.recv_timeout(Duration::from_secs(5)).is_ok() {}
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// The scroll bars of a page and of its boxes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrollbars {
    Hidden,
    Shown,
}

pub(crate) struct Page<'a> {
    browser: &'a mut Browser,
    target: String,
    session: String,
    url: String,
}

impl Page<'_> {
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.browser.call(Some(&self.session), method, params)
    }

    pub(crate) fn resize(&mut self, (width, height): (u32, u32)) -> Result<(), String> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics).map(drop)
    }

    /// Hides scroll bars, so that a page is as wide as its window, or shows them.
    pub(crate) fn scrollbars(&mut self, scrollbars: Scrollbars) -> Result<(), String> {
        let hidden = scrollbars == Scrollbars::Hidden;
        self.call("Emulation.setScrollbarsHidden", &json!({ "hidden": hidden })).map(drop)
    }

    /// Returns the value of an expression; an exception is an error.
    pub(crate) fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true });
        let answer = self.call("Runtime.evaluate", &params)?;
        if answer["exceptionDetails"].is_null() {
            Ok(answer["result"]["value"].clone())
        } else {
            Err(format!("{expression}: {}", answer["exceptionDetails"]["exception"]["description"]))
        }
    }

    /// Fails unless the expression is true.
    pub(crate) fn check(&mut self, what: &str, expression: &str) -> Result<(), String> {
        let value = self.eval(expression)?;
        if value == json!(true) { Ok(()) } else { Err(format!("{what}: `{expression}` gave {value}")) }
    }

    /// Waits until the expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) -> Result<(), String> {
        for _ in 0..POLLS {
            if self.eval(&format!("!!({expression})"))? == json!(true) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        Err(format!("never came true: {expression}"))
    }

    /// Clicks with the mouse on the middle of the first element that the selector finds, as a person would.
    pub(crate) fn click(&mut self, selector: &str) -> Result<(), String> {
        let (x, y) = self.middle(selector)?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event)?;
        }
        self.settle()
    }

    /// Moves the mouse onto an element.
    pub(crate) fn hover(&mut self, selector: &str) -> Result<(), String> {
        let (x, y) = self.middle(selector)?;
        for dx in [0.0, 2.0] {
            self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x + dx, "y": y }))?;
        }
        self.settle()
    }

    /// Presses in the middle of an element, moves `dx` to the right and lets go.
    pub(crate) fn drag(&mut self, selector: &str, dx: f64) -> Result<(), String> {
        let (x, y) = self.middle(selector)?;
        for (kind, x, buttons) in [
            ("mouseMoved", x, 0),
            ("mousePressed", x, 1),
            ("mouseMoved", x + dx / 2.0, 1),
            ("mouseMoved", x + dx, 1),
            ("mouseReleased", x + dx, 0),
        ] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event)?;
        }
        self.settle()
    }

    pub(crate) fn double_click(&mut self, selector: &str) -> Result<(), String> {
        let (x, y) = self.middle(selector)?;
        for count in [1, 2] {
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": count });
                self.call("Input.dispatchMouseEvent", &event)?;
            }
        }
        self.settle()
    }

    fn middle(&mut self, selector: &str) -> Result<(f64, f64), String> {
        let at = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); if (!e) return null; \
             e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ))?;
        match (at[0].as_f64(), at[1].as_f64()) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => Err(format!("nothing matches {selector}")),
        }
    }

    pub(crate) fn key(&mut self, key: &str) -> Result<(), String> {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key, "code": key }))?;
        }
        self.settle()
    }

    pub(crate) fn type_text(&mut self, selector: &str, text: &str) -> Result<(), String> {
        self.click(selector)?;
        self.call("Input.insertText", &json!({ "text": text }))?;
        self.settle()
    }

    /// Waits until the requested changes are drawn.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)))").map(drop)
    }

    /// Takes a picture of the whole page, or of one element.
    pub(crate) fn shoot(&mut self, selector: Option<&str>) -> Result<String, String> {
        let clip = match selector {
            None => json!(null),
            Some(selector) => self.eval(&format!(
                "(() => {{ const r = document.querySelector({selector:?}).getBoundingClientRect(); \
                 return {{ x: r.x + scrollX - 8, y: r.y + scrollY - 8, width: r.width + 16, height: r.height + 16, scale: 1 }}; }})()"
            ))?,
        };
        let mut params = json!({ "format": "png" });
        if !clip.is_null() {
            params["clip"] = clip;
            params["captureBeyondViewport"] = json!(true);
        }
        let shot = self.call("Page.captureScreenshot", &params)?;
        Ok(shot["data"].as_str().unwrap_or_default().to_owned())
    }

    /// Fails if the page requested anything but itself, threw, or logged an error to the console; then closes it.
    pub(crate) fn close(mut self) -> Result<(), String> {
        self.settle()?;
        let mut complaints = Vec::new();
        let mut requests = 0;
        for event in &self.browser.events {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    requests += 1;
                    if url.split('#').next() != self.url.split('#').next() {
                        complaints.push(format!("request for {url}"));
                    }
                }
                "Runtime.exceptionThrown" => complaints.push(format!("exception: {}", params["exceptionDetails"])),
                "Runtime.consoleAPICalled" => complaints.push(format!("console: {}", params["args"])),
                "Log.entryAdded" => complaints.push(format!("log: {}", params["entry"])),
                _ => {}
            }
        }
        let target = json!({ "targetId": self.target });
        self.browser.call(None, "Target.closeTarget", &target)?;
        if requests == 0 {
            complaints.push("the page's own request was not seen, so others would not have been either".into());
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }
}
