//! A paper of two tiny figures: claims judged, recorded, and compared with the recorded verdicts.

use serde_json::Value;
use testing::Bounded;

use crate::json::is_summary;
use crate::support::{ONE, ProgramRun, Scratch, keys, wait_for};

const CLAIMS: &str = r#"
[paper]
figure = "8"

[scale.quick]
note = "flows of 16 KiB instead of 64 KiB"
set = { "traffic.0.size" = "16KiB" }

# What the paper says first.
[[claim]]
id = "all-end" # every one of them
text = "All flows end"
paper = "4"
check = "dctcp.all.completed == 4"

[[claim]]
id = "fast"
text = "In a nanosecond | or so"
paper = "1 ns"
check = "dctcp.all.fct.p99 <= 1ns"
direction = "dctcp.all.fct.p99 <= 1s"

[[claim]]
id = "coded"
text = "Coding helps"
paper = 0.5
pending = "needs coded flows"
"#;

fn papers(scratch: &Scratch) {
    scratch.write("papers/tiny/fig8-one.toml", &format!("# A comment at the top.\n{}{CLAIMS}", ONE.trim_start()));
    scratch.write("papers/tiny/fig10.toml", ONE);
}

fn verdicts(figure: &Value) -> Vec<&str> {
    figure["claims"].as_array().unwrap().iter().map(|claim| claim["verdict"].as_str().unwrap()).collect()
}

#[test]
fn as_json() {
    let scratch = Scratch::new("reproduce");
    papers(&scratch);
    scratch.write("papers/tiny/fig10.toml", &format!("{ONE}[scale.quick]\n"));
    let ran = scratch.narrows("reproduce tiny --json").ok();
    assert_eq!(ran.err, "");
    let json = ran.json();
    assert_eq!(keys(&json), ["schema", "scale", "figures"]);
    assert_eq!((&json["schema"], &json["scale"]), (&1.into(), &"quick".into()));
    let figures = json["figures"].as_array().unwrap();
    let named: Vec<_> = figures.iter().map(|it| (it["paper"].as_str(), it["figure"].as_str())).collect();
    assert_eq!(named, [(Some("tiny"), Some("fig8-one")), (Some("tiny"), Some("fig10"))]);
    for figure in figures {
        assert_eq!(keys(figure), ["paper", "figure", "claims", "causes", "runs"]);
        figure["runs"].as_array().unwrap().iter().for_each(is_summary);
        for claim in figure["claims"].as_array().unwrap() {
            assert_eq!(keys(claim), ["id", "text", "paper", "measured", "verdict", "seeds", "note"]);
        }
    }
    assert_eq!(verdicts(&figures[0]), ["reproduced", "direction only", "pending"]);
    assert!(verdicts(&figures[1]).is_empty());
    let report = scratch.read("out/reproduce/quick/tiny/fig8-one/report.html");
    assert!(report.contains("flows of 16 KiB instead of 64 KiB"));
}

#[test]
fn verdicts_are_recorded_and_regressions_fail() {
    let scratch = Scratch::new("recorded");
    papers(&scratch);
    let file = "papers/tiny/fig8-one.toml";
    let before = scratch.read(file);
    let ran = scratch.narrows("reproduce tiny/fig8 --update-verdicts --results papers").ok();
    assert!(ran.out.contains("1 figure, 3 claims: 1 reproduced, 1 direction only, 1 pending"), "{ran}");
    let after = scratch.read(file);
    // Nothing but the verdicts is new, and comments stay.
    let is_new = |line: &&str| line.starts_with("recorded = ");
    let (new, kept): (Vec<&str>, Vec<&str>) = after.lines().partition(is_new);
    assert_eq!(kept, before.lines().collect::<Vec<_>>());
    let verdicts = ["reproduced", "direction only", "pending"];
    assert_eq!(new, verdicts.map(|verdict| format!("recorded = {{ quick = \"{verdict}\" }}")));
    // The verdict of another scale is recorded next to it.
    scratch.narrows("reproduce tiny/fig8 --update-verdicts --scale paper --quiet").ok();
    assert!(scratch.read(file).contains("recorded = { quick = \"direction only\", paper = \"direction only\" }"));
    // One seed is enough there, and the record states that there was one.
    scratch
        .narrows("reproduce tiny/fig8 --update-verdicts --results one --scale paper --seeds 1 --quiet --out one-seed")
        .ok();
    let figures = scratch.read("one/tiny/results/paper/figures.csv");
    assert!(figures.contains("\nfig8-one,Fig. 8,") && figures.contains(",,1,"), "{figures}");
    assert!(scratch.read("one/tiny/results/paper/claims.csv").contains(",reproduced,,1\n"));
    scratch.narrows("reproduce tiny/fig8 --update-verdicts --seeds 1").fails(2, &["`quick`"]);
    // A person's comments next to a verdict stay, and so do line ends.
    let noted = before.replacen("check = ", "recorded = { quick = \"undecided\" } # accepted: Ann\ncheck = ", 1);
    let noted =
        noted.replacen("direction = ", "recorded.quick = \"undecided\" # why\ndirection = ", 1).replace('\n', "\r\n");
    scratch.write(file, &noted);
    scratch.narrows("reproduce tiny/fig8 --update-verdicts --quiet").ok();
    let pairs = [
        ("{ quick = \"undecided\" } #", "{ quick = \"reproduced\" } #"),
        ("\"undecided\" # why", "\"direction only\" # why"),
    ];
    let expected = pairs.iter().fold(noted.clone(), |text, (from, to)| text.replacen(from, to, 1));
    let again = scratch.read(file);
    let pending = "recorded = { quick = \"pending\" }\r\n";
    assert_eq!(again.replacen(pending, "", 1), expected);
    let inline = before.split("[[claim]]").next().unwrap().to_owned();
    let claim = r#"{ id = "a", text = "All", paper = "4", check = "dctcp.all.completed == 4" }"#;
    scratch.write("papers/tiny/fig9.toml", &format!("claim = [{claim}]\n{inline}"));
    scratch.narrows("reproduce tiny/fig9 --update-verdicts --quiet").fails(2, &["fig9.toml", "[[claim]] tables"]);
    scratch.write(file, &after);
    std::fs::remove_file(scratch.path("papers/tiny/fig9.toml")).unwrap();
    let record = |file: &str| scratch.read(&format!("papers/tiny/results/quick/{file}.csv"));
    let claims = record("claims");
    assert!(claims.contains("\nfig8-one,fast,In a nanosecond | or so,1 ns,"), "{claims}");
    assert!(claims.ends_with(",pending,needs coded flows,5\n"), "{claims}");
    assert!(record("figures").contains("flows of 16 KiB instead of 64 KiB,5,"));
    assert!(record("fig8-one").contains("\nCompletion times,,"));
    assert!(!scratch.path("papers/tiny/results/quick/causes.csv").exists());
    // The rows of another figure are added, and these stay.
    scratch.write("papers/tiny/fig10.toml", &format!("{ONE}[scale.quick]\n"));
    scratch.narrows("reproduce tiny/fig10 --quiet --results papers").ok();
    assert_eq!(record("claims"), claims);
    let figures = record("figures");
    let names: Vec<&str> = figures.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(names, ["figure", "fig8-one", "fig10"]);
    // Results are no figures.
    let files = scratch.tree();
    scratch.narrows("reproduce tiny/fig8 --quiet --results papers").ok();
    assert_eq!(scratch.tree(), files);
    let refused = scratch.narrows("reproduce tiny/fig8 --quiet --results papers --set stop=6us");
    refused.fails(2, &["--results", "--set and --seed"]);

    // As recorded: success. Better than recorded: success. Worse than recorded: exit status 3, and the worse claims are
    // named.
    scratch.narrows("reproduce tiny/fig8 --quiet").ok();
    scratch
        .narrows("reproduce tiny/fig8 --quiet --set port.buffer=8KiB --set stop=6us --out changed")
        .reports(&["regression: ", "tiny/fig8-one all-end: reproduced before, "]);
    scratch.write(file, &after.replace("direction only", "reproduced"));
    let ran = scratch.narrows("reproduce tiny/fig8");
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.out.contains("direction only (was reproduced)"), "{ran}");
    let ran = ran.reports(&["regression: tiny/fig8-one fast: reproduced before, direction only now"]);
    assert_eq!(ran.err.matches("regression").count(), 1, "{ran}");
    scratch.narrows("reproduce tiny/fig8 --json").reports(&["regression: "]).json();
    assert_eq!(scratch.narrows("reproduce tiny/fig8 --quiet").code, 3);
    // Recording accepts worse verdicts.
    scratch.narrows("reproduce tiny/fig8 --update-verdicts --quiet").ok();
    scratch.narrows("reproduce tiny/fig8 --quiet").ok();
}

#[test]
fn invalid_claims_fail_before_any_run() {
    let scratch = Scratch::new("refused");
    papers(&scratch);
    let good = scratch.read("papers/tiny/fig8-one.toml");
    let refused = |from: &str, to: &str, parts: &[&str]| {
        scratch.write("papers/tiny/fig8-one.toml", &good.replace(from, to));
        let before = scratch.tree();
        let stderr = scratch.narrows("reproduce tiny/fig8").fails(2, parts).err;
        assert_eq!(scratch.tree(), before);
        stderr
    };
    refused("\"dctcp.all.completed", "\"dtcp.all.completed", &["fig8-one.toml", "`all-end`", "run `dtcp`", "`dctcp`?"]);
    refused(
        "fct.p99 <= 1ns",
        "fct.p9 <= 1ns",
        &["fig8-one.toml", "claim `fast`", "fig8-one.toml:36:24", "mean, p50", "^^"],
    );
    refused("\"4\"\ncheck", "\"4\"\nchekc", &["fig8-one.toml", "claim `all-end`", "chekc"]);
    let without = refused("[scale.quick]", "[scale.small]", &["`papers/tiny/fig8-one.toml`", "`--scale paper`"]);
    assert!(!without.contains("--scale:"), "{without}");
    scratch.write("papers/tiny/fig8-one.toml", &good);
    scratch.write("notes.md", "# Notes\n");
    let verdicts = "figure,id,claim,paper,measured,verdict,note,seeds\nfig8-one,fast,t,1,2,proved,,5\n";
    scratch.write("wrong/tiny/results/quick/claims.csv", verdicts);
    scratch.write("other/tiny/results/quick/figures.csv", "# Notes\n");
    let before = scratch.tree();
    let known = ["error: nothing in `papers` is called `unno`", "tiny/fig8-one, tiny/fig10"];
    scratch.narrows("reproduce unno").fails(2, &known);
    scratch.narrows("reproduce papers/tiny/fig9.toml").fails(2, &["called `papers/tiny/fig9.toml`", "tiny/fig8-one"]);
    scratch.narrows("reproduce notes.md").fails(2, &["`notes.md`", "`papers`", "--papers", "narrows run"]);
    scratch.narrows("reproduce tiny/fig1").fails(2, &["`tiny/fig1`"]);
    scratch
        .narrows("reproduce tiny/fig8 --results notes.md")
        .fails(2, &["cannot create `notes.md/tiny/results/quick`"]);
    let inside = ["it lies in the results directory `new/tiny/fig8-one`"];
    scratch.narrows("reproduce tiny/fig8-one --results new/tiny/fig8-one --out new").fails(2, &inside);
    let wrong =
        ["error: wrong/tiny/results/quick/claims.csv:2: verdict `proved`; expected one of: reproduced, ", "help: "];
    scratch.narrows("reproduce tiny/fig8 --results wrong").fails(2, &wrong);
    let other =
        ["error: other/tiny/results/quick/figures.csv:1: found the columns `# Notes`; expected `figure,in_paper,"];
    scratch.narrows("reproduce tiny/fig8 --results other").fails(2, &other);
    scratch.narrows("reproduce tiny/fig8 --markdown page.md").fails(2, &["renamed to `--results`"]);
    scratch.narrows("reproduce tiny/fig8 --scale huge").fails(2, &["'huge'", "paper, quick"]);
    assert_eq!(scratch.tree(), before);
}

/// Without a name nothing runs: it would be hours of work.
#[test]
fn without_a_name_the_papers_are_listed() {
    let scratch = Scratch::new("listed");
    papers(&scratch);
    scratch.write("papers/tiny/fig8-one-as-published.toml", ONE);
    scratch.write("papers/other/fig1.toml", ONE);
    let before = scratch.tree();
    let listed = ["which figures?", "  other: 1 figure\n", "  tiny: 2 figures, and 1 as published", "`all`: 3 figures"];
    scratch.narrows("reproduce").fails(2, &listed);
    scratch.narrows("reproduce --seeds 3 --json").fails(2, &listed);
    assert_eq!(scratch.tree(), before);
}

/// A figure may be named by its file, from anywhere.
#[test]
fn figures_are_selected_by_file() {
    let scratch = Scratch::new("by-file");
    papers(&scratch);
    scratch.write("papers/tiny/fig8-one-and-more.toml", ONE);
    for named in ["papers/tiny/fig8-one.toml", "./papers/../papers/tiny/fig8-one.toml"] {
        let json = scratch.narrows(&format!("reproduce {named} --seeds 1 --json")).ok().json();
        let figures = json["figures"].as_array().unwrap();
        assert_eq!((figures.len(), &figures[0]["figure"]), (1, &"fig8-one".into()));
    }
}

/// The runs that a claim compares have the same seeds everywhere, in variants, too.
#[test]
fn variants_have_all_seeds() {
    let scratch = Scratch::new("variants");
    let variants = "[variants.small]\nset = { \"traffic.0.size\" = \"1KiB\" }\n[variants.\"a.b\"]\ngrid = {}\n";
    let claim = "[[claim]]\nid = \"x\"\ntext = \"t\"\npaper = 4\n\
                 check = \"dctcp[variant=small].all.fct.mean < dctcp.all.fct.mean\"\n";
    let file = |more: &str| {
        let text = format!("{}[scale.quick]\n{claim}{variants}{more}", ONE.trim_start());
        scratch.write("papers/tiny/fig1.toml", &text);
    };
    let run = |options: &str, out: &str| scratch.narrows(&format!("reproduce tiny --json {options} --out {out}")).ok();
    let seeds = |ran: &ProgramRun, id: &str| {
        let json = ran.json();
        let runs = json["figures"][0]["runs"].as_array().unwrap().clone();
        let of = runs.iter().filter(|run| run["run"].as_str().unwrap().ends_with(id));
        of.map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    file("");
    let ran = run("--seeds 3 --seed 7", "three");
    for variant in ["variant=small", "variant=a.b"] {
        assert_eq!(seeds(&ran, variant), [7, 8, 9]);
    }
    let claim = &ran.json()["figures"][0]["claims"][0];
    assert_eq!((&claim["verdict"], &claim["seeds"]), (&"reproduced".into(), &3.into()), "{claim}");
    assert_eq!(seeds(&run("", "five"), "variant=small"), [1, 2, 3, 4, 5]);
    // A file's own seeds stay.
    file("[variants.seventh]\nset = { seed = 7 }\n");
    let ran = run("--seeds 3", "seventh").reports(&["has seeds of its own"]);
    assert_eq!((seeds(&ran, "variant=small"), seeds(&ran, "variant=seventh")), (vec![1], vec![7]));
    file("[grid]\nseed = [3, 4]\n");
    let ran = run("--seeds 3", "grid").reports(&["has seeds of its own"]);
    assert_eq!((seeds(&ran, "dctcp,seed=4"), seeds(&ran, "variant=small")), (vec![4], vec![3]));
}

#[test]
fn finished_runs_are_kept() {
    let scratch = Scratch::new("reproduce");
    let two = format!("{ONE}[grid]\n\"traffic.0.size\" = [\"4KiB\", \"8KiB\"]\n[scale.quick]\n");
    scratch.write("papers/tiny/fig1.toml", &two);
    let again = |with: &str| scratch.narrows(&format!("reproduce tiny --seeds 1 --threads 1 {with}")).ok();
    let kept = |ran: &crate::support::ProgramRun| ran.err.lines().find(|line| line.contains("kept")).map(str::to_owned);
    let runs = "out/reproduce/quick/tiny/fig1/runs";
    let flows = || std::fs::read(scratch.path(&format!("{runs}/dctcp,traffic.0.size=8KiB/flows.parquet"))).unwrap();
    assert_eq!(kept(&again("")), None);
    let first = flows();
    assert_eq!(kept(&again("")).as_deref(), Some("2 of 2 runs finished before: kept; --force runs them again"));
    assert!(kept(&again("--json")).is_none());
    // One is gone, one is damaged: each is done again, and the other is not.
    std::fs::remove_dir_all(scratch.path(&format!("{runs}/dctcp,traffic.0.size=8KiB"))).unwrap();
    assert_eq!(kept(&again("")).as_deref(), Some("1 of 2 runs finished before: kept; --force runs them again"));
    assert_eq!(flows(), first);
    std::fs::write(scratch.path(&format!("{runs}/dctcp,traffic.0.size=8KiB/flows.parquet")), "").unwrap();
    assert_eq!(kept(&again("")).as_deref(), Some("1 of 2 runs finished before: kept; --force runs them again"));
    assert_eq!(flows(), first);
    // One of another seed does not take its place unasked.
    let lost = ["tiny/fig1` has finished runs of other settings", "seed: 1 -> 2", "--out", "--force"];
    scratch.narrows("reproduce tiny --seeds 1 --seed 2").fails(2, &lost);
    assert_eq!(kept(&again("--force")), None);
    assert_eq!(flows(), first);
}

/// Recorded verdicts have as many seeds as they state, the same for each run.
#[test]
fn a_figure_with_seeds_of_its_own() {
    let scratch = Scratch::new("own-seeds");
    let file = "papers/tiny/fig8.toml";
    let with = |seeds: &str| scratch.write(file, &format!("{}{CLAIMS}[grid]\nseed = {seeds}\n", ONE.trim_start()));
    for few in ["[3]", "[1, 2, 3, 4]"] {
        with(few);
        let before = scratch.read(file);
        for (option, keeps) in [("--update-verdicts", "--update-verdicts"), ("--results record", "--results")] {
            let ran = scratch.narrows(&format!("reproduce tiny {option} --out out"));
            ran.fails(2, &[keeps, file, "the run `dctcp` of claim `all-end` has", "5 or more are needed", "[grid]"]);
        }
        assert_eq!(scratch.read(file), before);
        assert!(!scratch.path("out").exists() && !scratch.path("record/tiny/results/quick/claims.csv").exists());
    }
    with("[1, 1, 1, 1, 1]");
    scratch.narrows("reproduce tiny --update-verdicts --out out").fails(2, &[file, "`1` and `1` give the same run"]);
    assert_eq!(scratch.files("out"), [""; 0]);
    // The claims are judged all the same, over these seeds and no others.
    with("[3, 4]");
    let ran = scratch.narrows("reproduce tiny --seeds 7 --json").ok().reports(&["--seeds"]);
    let json = ran.json();
    let runs = json["figures"][0]["runs"].as_array().unwrap().iter();
    assert_eq!(runs.map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(json["figures"][0]["claims"][0]["seeds"], 2);
    with("[11, 12, 13, 14, 15]");
    scratch.narrows("reproduce tiny --update-verdicts --results record --force").ok();
    assert!(scratch.read(file).contains("recorded = { quick = \"reproduced\" }"));
    assert!(scratch.read("record/tiny/results/quick/figures.csv").contains(",5,"));
    // A variant that has fewer than the rest.
    let variant = "[variants.small]\nset = { \"traffic.0.size\" = \"1KiB\" }\ngrid = { seed = [11, 12] }\n";
    scratch.write(
        file,
        &format!("{}{variant}", scratch.read(file))
            .replace("dctcp.all.completed", "dctcp[variant=small].all.completed"),
    );
    let ran = scratch.narrows("reproduce tiny --update-verdicts");
    ran.fails(2, &["the run `dctcp", "`all-end`"]);
}

#[test]
fn changed_files_get_no_verdict() {
    let scratch = Scratch::new("changed-meanwhile");
    let file = "papers/tiny/fig8.toml";
    let sizes = "[grid]\n\"traffic.0.size\" = [\"4KiB\", \"32MiB\"]\n";
    let claim = "[[claim]]\nid = \"x\"\ntext = \"t\"\npaper = 4\ncheck = \"dctcp[size=4KiB].all.completed == 4\"\n";
    scratch.write(file, &format!("{}[scale.quick]\n{sizes}{claim}", ONE.trim_start()));
    let line = "reproduce tiny --update-verdicts --quiet --out out";
    let mut child = scratch.command(line.split(' ')).piped();
    wait_for(&mut child, "a run begins", || scratch.path("out/tiny/fig8/.next/runs").exists());
    let edited = scratch.read(file).replace("completed == 4", "completed == 5");
    scratch.write(file, &edited);
    ProgramRun::new(line, &child.output()).fails(2, &["was changed during its runs", file, "help: "]);
    assert_eq!(scratch.read(file), edited);
}

/// A record that others extend while the runs go keeps their rows. One that they broke stays as it is.
#[test]
fn concurrent_record_rows_are_kept() {
    let scratch = Scratch::new("record-meanwhile");
    let sizes = "[grid]\n\"traffic.0.size\" = [\"4KiB\", \"32MiB\"]\n";
    scratch.write("papers/tiny/fig8.toml", &format!("{}[scale.quick]\n{sizes}", ONE.trim_start()));
    scratch.write("papers/tiny/fig1.toml", &format!("{ONE}[scale.quick]\n"));
    scratch.narrows("reproduce tiny/fig1 --quiet --out out --results papers").ok();
    let (file, line) =
        ("papers/tiny/results/quick/figures.csv", "reproduce tiny/fig8 --quiet --out out --results papers");
    let before = scratch.read(file);
    let meanwhile = |options: &str, text: &str| {
        let line = format!("{line}{options}");
        let mut child = scratch.command(line.split(' ')).piped();
        wait_for(&mut child, "a run begins", || scratch.path("out/tiny/fig8/.next/runs").exists());
        scratch.write(file, text);
        ProgramRun::new(&line, &child.output())
    };
    let row = "fig20,,,,5,,\n";
    meanwhile("", &format!("{before}{row}")).ok();
    let both = scratch.read(file);
    assert!(both.starts_with(&before) && both.contains("\nfig8,") && both.ends_with(row), "{both}");
    let broken = format!("{before}fig20,5\n");
    let expected = ["figures.csv:3: found 2 fields; expected 7", "help: "];
    meanwhile(" --force", &broken).fails(2, &expected);
    assert_eq!(scratch.read(file), broken);
    scratch.narrows(line).fails(2, &expected);
    scratch.write(file, &before);
    scratch.narrows(&line.replace(" --quiet", "")).ok().reports(&["10 of 10 runs finished before: kept"]);
    assert!(scratch.read(file).contains("\nfig8,"));
}

#[test]
fn averages_over_seeds() {
    let scratch = Scratch::new("reproduce");
    let table = "[[table]]\ntitle = \"All flows\"\ncolumns = [{ label = \"mean\", value = \"it.all.fct.mean\" }, \
                 { label = \"ends\", value = \"it.all.completed / it.all.count\" }]\n";
    let grid = "[grid]\nseed = [1, 2, 3]\n[variants.small]\nlabel = \"small flows\"\nset = { \"traffic.0.size\" = \"1KiB\" }\n";
    let scenario = format!("{ONE}{grid}{table}[scale.quick]\n");
    scratch.write("papers/tiny/fig1.toml", &scenario);
    scratch.write("one.toml", &scenario);
    let ran = scratch.narrows("reproduce tiny --results papers").ok();
    for expected in ["All flows", "All flows, small flows", "(deterministic)", "ends"] {
        assert!(ran.out.contains(expected), "{expected}: {ran}");
    }
    let rows = scratch.read("papers/tiny/results/quick/fig1.csv");
    assert!(rows.starts_with("table,point,scheme,metric,mean,half,unit,note\nAll flows,,"), "{rows}");
    // An incast that begins at once draws nothing.
    assert!(rows.contains(",mean,") && rows.contains(",,us,deterministic\n"), "{rows}");
    assert!(rows.contains("\nAll flows,small flows,") && !rows.contains("FCT p99"), "{rows}");
    assert!(rows.contains("\ninitial window,,"), "{rows}");
    assert!(scratch.narrows("run one.toml").ok().out.contains("All flows, small flows"));
    let report = std::fs::read_to_string(scratch.path("out/reproduce/quick/tiny/fig1/report.html")).unwrap();
    assert!(report.contains("section-averages") && report.contains("small flows"));
    // A mistake is found before anything runs.
    scratch.write("one.toml", &scenario.replace("it.all.fct.mean", "dctcp.all.fct.mean"));
    let expected = ["error: table `All flows`, column `mean`: expected a metric of flows", "one.toml:24:45", "^"];
    scratch.narrows("run one.toml --out other").fails(2, &expected);
    scratch.narrows("check one.toml").fails(2, &expected);
    scratch.write("one.toml", &scenario.replace("[[table]]\n", "[[table]]\nwithout = [\"smal\"]\n"));
    scratch.narrows("run one.toml --out other").fails(2, &["`All flows`", "`smal`", "`small`"]);
    assert!(!scratch.path("other").exists());
}

#[test]
fn a_scheme_is_scored_against_the_values_of_a_figure() {
    let scratch = Scratch::new("values");
    papers(&scratch);
    scratch.narrows("reproduce tiny/fig8 --values --quiet").ok();
    let file = "papers/tiny/values/fig8-one-quick.toml";
    let text = scratch.read(file);
    assert!(text.contains("seeds = [1, 2, 3, 4, 5]") && text.contains("\"law dctcp\" = ["), "{text}");
    // The same runs are the best of themselves, and need no other scheme.
    scratch.narrows("run papers/tiny/fig8-one.toml --scale quick --seeds 5 --out mine --quiet").ok();
    let scored = scratch.narrows(&format!("score mine --baseline {file} --metric all.fct.mean --json")).ok();
    assert_eq!(scored.err, "");
    assert!((scored.json()["scores"][0]["g"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{}", scored.out);
    scratch.narrows(&format!("score mine --baseline {file} --metric p50(all.slowdown)")).fails(2, &["all.fct.p99"]);
    scratch
        .narrows(&format!("score mine --baseline {file} --metric all.fct.mean --not-in-baseline dctcp"))
        .fails(2, &["all schemes are newcomers"]);
    // It is replaced while it is as it was written.
    scratch.narrows("reproduce tiny/fig8 --values --quiet").ok();
    scratch.write(file, &text.replace("quick", "paper"));
    scratch.narrows("reproduce tiny/fig8 --values --quiet").fails(2, &["edited"]);
    scratch.narrows("reproduce tiny/fig8 --values --seeds 1").fails(2, &["--values keeps"]);
}

const CAUSES: &str = r#"
[[cause]]
id = "slow-links"
claims = ["fast"]
text = "The paper's clock | is slower"
set = { "port.buffer" = "64KiB" }

[[cause]]
id = "no-flows" # none
claims = ["fast", "all-end"]
text = "Nothing is sent"
set = { "stop" = "1ns" }
"#;

/// A cause is tried on the schemes of its claims, with the seeds of the figure; outcomes go into the file and the page.
#[test]
fn suspected_causes_are_tried() {
    let scratch = Scratch::new("causes");
    let file = "papers/tiny/fig8-one.toml";
    scratch.write(file, &format!("{}{CLAIMS}{CAUSES}", ONE.trim_start()));
    let before = scratch.read(file);
    // Without --causes nothing of it is run.
    scratch.narrows("reproduce tiny --quiet").ok();
    assert!(!scratch.path("out/reproduce/quick/causes").exists());
    let ran = scratch.narrows("reproduce tiny --causes --update-verdicts --results papers").ok();
    assert!(ran.out.contains("slow-links: port.buffer = 64KiB") && ran.out.contains("refuted"), "{ran}");
    let causes = "out/reproduce/quick/causes/tiny/fig8-one";
    assert!(scratch.path(&format!("{causes}/slow-links/report.html")).is_file(), "{ran}");
    let recorded = scratch.read(file);
    let kept: Vec<&str> = recorded.lines().filter(|line| !line.starts_with("recorded = ")).collect();
    assert_eq!(kept, before.lines().collect::<Vec<_>>());
    assert!(recorded.contains(r#"recorded = { quick = { fast = "refuted" } }"#), "{recorded}");
    let causes = scratch.read("papers/tiny/results/quick/causes.csv");
    let row = "\nfig8-one,fast,slow-links,The paper's clock | is slower,port.buffer = 64KiB,";
    assert!(causes.contains(row) && causes.lines().count() == 4, "{causes}");
    // Trials stay where the claims are judged without causes.
    scratch.narrows("reproduce tiny --quiet --results papers").ok();
    assert_eq!(scratch.read("papers/tiny/results/quick/causes.csv"), causes);
    let ran = scratch.narrows("reproduce tiny --causes --json").ok().json();
    let trials = ran["figures"][0]["causes"].as_array().unwrap();
    let named: Vec<_> =
        trials.iter().map(|it| (it["cause"].as_str().unwrap(), it["outcome"].as_str().unwrap())).collect();
    let expected = [("slow-links", "refuted"), ("no-flows", "nothing to explain"), ("no-flows", "cannot judge")];
    assert_eq!(named, expected);
    let csv = scratch.narrows("reproduce tiny --causes --csv=causes").ok().out;
    assert!(csv.starts_with("figure,claim,cause,change,measured,verdict,") && csv.lines().count() == 4, "{csv}");
    scratch.write(file, &recorded.replace("fast = \"refuted\"", "fast = \"proved\""));
    scratch
        .narrows("reproduce tiny --causes")
        .fails(2, &["fig8-one.toml", "cause `slow-links`", "no outcome `proved`", "shown"]);
}
