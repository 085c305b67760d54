//! Two hundred kills at random times. Results are complete at any time, no leftover blocks a later run, and a run that
//! reaches its end has the same results as without the kills.

use std::process::Stdio;
use std::time::{Duration, Instant};

use testing::{Bounded, Process};

use crate::support::{Scratch, code};

const KILLS: u64 = 200;

const GRID: &str = r#"
name = "grid"
stop = "5ms"
[topology]
kind = "single-switch"
hosts = 4
[schemes.dctcp]
law = "dctcp"
[schemes.cubic]
law = "cubic"
[[traffic]]
kind = "incast"
intra = 3
size = "64KiB"
[monitor]
interval = "10us"
flows = "all"
[grid]
"traffic.0.size" = ["4KiB", "16KiB"]
"#;

/// Random numbers that follow from a seed.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        units::mix64(self.0) % bound
    }
}

fn start(scratch: &Scratch, line: &str) -> Process {
    scratch.command(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped()).start()
}

/// Kills a process. Returns its exit code and its output.
fn kill(mut child: Process) -> (i32, String) {
    child.kill();
    let output = child.output();
    (code(output.status), String::from_utf8(output.stderr).unwrap())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a command takes says when to kill the next one")]
fn two_hundred_kills_lose_no_results() {
    let scratch = Scratch::new("killed");
    scratch.write("grid.toml", GRID);
    scratch.write("other.toml", &GRID.replace("16KiB", "32KiB"));
    scratch
        .write("alone.toml", &GRID.split("[grid]").next().unwrap().replace("[schemes.cubic]\nlaw = \"cubic\"\n", ""));
    scratch.write("papers/tiny/fig1.toml", &format!("{GRID}[scale.quick]\n"));
    // Where each command's results are, and their expected contents.
    let kinds = [
        // These take each other's place, which is not done unasked.
        ("run alone.toml --out mixed --force", "mixed"),
        ("run grid.toml --out mixed --force", "mixed"),
        ("run other.toml --out mixed --force", "mixed"),
        ("run grid.toml --out grid --threads 1", "grid"),
        ("reproduce tiny --papers papers --out paper", "paper/tiny/fig1"),
    ];
    let mut expected = Vec::new();
    let mut longest = Duration::ZERO;
    for (line, out) in kinds {
        let begun = Instant::now();
        scratch.narrows(line).ok();
        longest = longest.max(begun.elapsed());
        expected.push(scratch.comparable(out));
    }
    let given = std::env::var("NARROWS_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| std::process::id().into());
    eprintln!("NARROWS_KILL_SEED={seed}");
    let mut random = SeededRandom(seed);
    let (mut killed, mut refused) = (0, 0);
    while killed < KILLS {
        let (line, out) = kinds[random.below(kinds.len() as u64) as usize];
        let force = if random.below(3) == 0 || line.ends_with("--force") { "" } else { " --force" };
        let line = format!("{line}{force}");
        let mut children = vec![start(&scratch, &line)];
        // Now and then a second writer, with the same or another command for the same directory.
        if random.below(4) == 0 {
            let others: Vec<&str> = kinds.iter().filter(|(_, other)| *other == out).map(|(line, _)| *line).collect();
            children.push(start(&scratch, others[random.below(others.len() as u64) as usize]));
        }
        for child in children {
            std::thread::sleep(longest.mul_f64(random.below(1_000) as f64 / 1_000.0));
            match kill(child) {
                (137, _) => killed += 1,
                (0, _) => {}
                (2, stderr) if stderr.contains("is in use by process ") => refused += 1,
                (code, stderr) => panic!("seed {seed}: {line} ended with {code}: {stderr}"),
            }
        }
        // There was a whole set before, so there is one now.
        let ran = scratch.narrows(&format!("compare {out} {out}"));
        assert_eq!(ran.code, 0, "seed {seed}, after {killed} kills, {line}: {ran}");
    }
    eprintln!("{killed} kills, {refused} second writers refused");
    for ((line, out), expected) in kinds.into_iter().zip(expected) {
        scratch.narrows(line).ok();
        let found = scratch.comparable(out);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "seed {seed}, {line}");
        assert!(found == expected, "seed {seed}, {line}: other bytes");
    }
    let left: Vec<String> =
        scratch.tree().into_iter().filter(|path| path.contains(".next") || path.contains(".partial")).collect();
    assert_eq!(left, [""; 0], "seed {seed}");
}

/// On a full file system finished runs stay, and the same command goes on from there.
#[test]
fn a_full_disk_loses_no_finished_run() {
    let scratch = Scratch::new("full");
    scratch.write("grid.toml", GRID);
    // Files of 20 blocks of 512 bytes: small runs fit, those with more samples do not.
    scratch.write("large.toml", &GRID.replace("\"4KiB\", \"16KiB\"", "\"4KiB\", \"4MiB\"").replace("10us", "1us"));
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let limited = format!("trap '' XFSZ; ulimit -f 20; exec {narrows} run large.toml --out out --threads 1");
    let output = std::process::Command::new("sh").args(["-c", &limited]).current_dir(scratch.path("")).finish();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(code(output.status), 2, "{stderr}");
    assert!(stderr.contains("error: cannot write `") && stderr.contains("File too large"), "{stderr}");
    assert!(stderr.contains("of 4 runs were finished and are kept; the same command goes on from there"), "{stderr}");
    let again = scratch.narrows("run large.toml --out out").ok();
    assert!(again.err.contains("finished before: kept"), "{again}");
}
