//! Writes a sample report: `cargo run -p narrows-report --example sample -- report.html
//! [mixed|failing|ports|training|jobs|grid|seeds|tails|wide-grid|large|hostile]`.

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".into());
    let data = match arguments.next().as_deref() {
        Some("grid") => sample::grid(),
        Some("failing") => sample::failing(),
        Some("ports") => sample::ports(),
        Some("training") => sample::training(),
        Some("jobs") => sample::jobs(),
        Some("seeds") => sample::seeds(),
        Some("tails") => sample::tails(),
        Some("large") => sample::large(),
        Some("wide-grid") => sample::wide_grid(),
        Some("hostile") => sample::hostile(),
        _ => sample::mixed(),
    };
    std::fs::write(path, report::render(&data))
}
