//! `--csv`: every table of a command for programs, in base units.

use crate::support::{GRID, Scratch};

/// The rows of a table, by heading.
fn rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let row = |record: ::csv::StringRecord| {
        heads.iter().zip(&record).map(|(head, value)| (head.to_owned(), value.to_owned())).collect()
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn value<'a>(row: &'a [(String, String)], head: &str) -> &'a str {
    let found = row.iter().find(|(known, _)| known == head);
    found.map_or_else(|| panic!("no {head} in {row:?}"), |(_, value)| value.as_str())
}

#[test]
fn tables_are_printed_as_csv() {
    let scratch = Scratch::new("csv");
    scratch.write("s.toml", GRID);
    let ran = scratch.narrows("run s.toml --seeds 2 --out r --csv").ok();
    let runs = rows(&ran.out);
    assert_eq!(ran.out, scratch.narrows("show r --csv").ok().out);
    assert_eq!(ran.out, scratch.narrows("show r --csv=runs").ok().out);
    let json = scratch.narrows("show r --json").ok().json();
    let summaries = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), summaries.len());
    for (row, summary) in runs.iter().zip(summaries) {
        assert_eq!(value(row, "seed"), summary["seed"].to_string());
        assert_eq!(value(row, "scheme"), summary["point"]["scheme"].as_str().unwrap());
        let mean: f64 = value(row, "FCT_mean_ns").parse().unwrap();
        assert_eq!(Some(mean), summary["flows"]["all"]["fct_ns"]["mean"].as_f64());
        assert_eq!(value(row, "drops"), summary["network"]["drops"].to_string());
        assert_eq!((value(row, "done"), value(row, "done_of")).0, summary["flows"]["all"]["completed"].to_string());
        // A 99th percentile of few flows is flagged here, too.
        assert_eq!(value(row, "FCT_p99_of_few"), "1");
    }
    let means = rows(&scratch.narrows("show r --csv=means").ok().out);
    let heads: Vec<&str> = means[0].iter().map(|(head, _)| head.as_str()).collect();
    for head in ["table", "name", "point", "FCT_mean_ns", "FCT_mean_margin_ns", "small:_p99", "small:_p99_of_few"] {
        assert!(heads.contains(&head), "no {head} in {heads:?}");
    }
    assert!(!rows(&scratch.narrows("show r --csv=pooled").ok().out).is_empty());
    scratch.narrows("show r --csv=mean").fails(2, &["--csv", "`mean`", "`means`"]);
    scratch.narrows("show r --csv --json").fails(2, &["cannot be used with"]);
    // A wrong name is found before anything runs.
    let wrong = "there is no table `mean` here";
    for command in ["run s.toml --out new --csv=mean", "sweep s.toml --out new --csv=mean", "demo --out new --csv=mean"]
    {
        scratch.narrows(command).fails(2, &[wrong, "did you mean `means`?"]);
    }
    // The flows of several runs are on disk when a sweep ends: this table is for `show`.
    scratch.narrows("sweep s.toml --seeds 2 --out new --csv=pooled").fails(2, &["`pooled`"]);
    scratch.narrows("sweep s.toml --list --csv").fails(2, &["cannot be used with"]);
    scratch.narrows("explain r --csv=mean").fails(2, &[wrong]);
    scratch.narrows("bench engine --csv=mean").fails(2, &[wrong]);
    assert!(scratch.files("new").is_empty());
    let scores = rows(&scratch.narrows("score r --csv").ok().out);
    assert!(!scores.is_empty() && scores.iter().all(|row| value(row, "G").parse::<f64>().unwrap() >= 1.0));
    let ratios = rows(&scratch.narrows("score r --csv=ratios").ok().out);
    assert!(
        !ratios.is_empty()
            && ratios.iter().all(|row| value(row, "table").starts_with("Over the best, traffic.0.load = "))
    );
    let causes = rows(&scratch.narrows("explain r --csv --quiet").ok().out);
    let shares: f64 = causes
        .iter()
        .filter(|row| {
            value(row, "part") == value(&causes[0], "part") && value(row, "group") == value(&causes[0], "group")
        })
        .map(|row| value(row, "share").parse::<f64>().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-6, "{causes:?}");
    let flows = rows(&scratch.narrows("explain r --csv=flows --quiet").ok().out);
    assert!(
        !flows.is_empty()
            && flows.iter().all(|row| !value(row, "cause").is_empty() && !value(row, "fct_ns").is_empty())
    );
    let traits = rows(&scratch.narrows("explain r --traits --csv").ok().out);
    assert!(traits.iter().any(|row| value(row, "trait") == "retransmitted_share"), "{traits:?}");
    let slowest = rows(&scratch.narrows("explain r --traits --csv=flows").ok().out);
    assert!(slowest.iter().all(|row| value(row, "slowdown").parse::<f64>().unwrap() >= 1.0), "{slowest:?}");
    let codes = rows(&scratch.narrows("bench codes --runs 1 --only 8+2-1400 --engine portable --csv").ok().out);
    assert!(codes.iter().all(|row| value(row, "encode_bytes_per_s").parse::<f64>().unwrap() > 0.0) && codes.len() == 2);
    let compared = rows(&scratch.narrows("compare r r --csv").ok().out);
    assert!(!compared.is_empty() && compared.iter().all(|row| value(row, "before") == value(row, "after")));
    let links = rows(&scratch.narrows("check s.toml --csv").ok().out);
    assert!(
        links.iter().any(|row| {
            (value(row, "scenario"), value(row, "link_class")) == ("s.toml", "host")
                && !value(row, "capacity_bps").is_empty()
                && value(row, "most_loaded_link").contains('>')
        }),
        "{links:?}"
    );
    let laws = rows(&scratch.narrows("laws --csv").ok().out);
    assert!(laws.iter().any(|row| value(row, "law") == "gemini"));
    let params = rows(&scratch.narrows("laws gemini --csv").ok().out);
    assert!(params.iter().any(|row| value(row, "parameter") == "delay_threshold"));
}
