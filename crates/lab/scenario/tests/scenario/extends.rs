//! Scenarios that are others with changes, and parameters of one class of flows.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use laws::catalog::ParamValue;
use scenario::{Error, FlowClass, Overrides, Scenario, load};
use units::Frac;

use crate::location::points_at;

const BASE: &str = "name = \"base\"\nstop = \"20ms\"\n[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nrate = \"10Gbps\"\n\
                    two_datacenters = true\n[port]\nbuffer = \"1MB\"\necn = { min = \"100KB\", max = \"200KB\" }\n\
                    [schemes.two]\nintra = \"dctcp\"\ninter = \"bbr\"\n[schemes.one]\nlaw = \"cubic\"\n\
                    [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[grid]\nseed = [1, 2]\n";

/// A folder of its own for a test.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-extends-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.write("base.toml", BASE);
        folder
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn load(&self, text: &str) -> Result<Scenario, Error> {
        self.write("this.toml", text);
        load(self.0.join("this.toml"), &Overrides::default())
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file that extends another equals one file that has all of it.
#[test]
fn extending_file_equals_the_merged_file() {
    let folder = TestDir::new("whole");
    let over = folder.load(
        "extends = \"base.toml\"\nwithout = [\"grid\", \"schemes.one\"]\nname = \"this\"\n[topology]\nleft = 4\nright = 4\n\
         [port]\nbuffer = \"2MB\"\n[schemes.two]\nlaw = \"unocc\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"2MB\"\n",
    );
    let whole = BASE
        .replace("\"base\"", "\"this\"")
        .replace("left = 2\nright = 2", "left = 4\nright = 4")
        .replace("1MB\"\necn", "2MB\"\necn")
        .replace("intra = \"dctcp\"\ninter = \"bbr\"\n[schemes.one]\nlaw = \"cubic\"", "law = \"unocc\"")
        .replace(
            "kind = \"permutation\"\nsize = \"1MB\"\n[grid]\nseed = [1, 2]",
            "kind = \"permutation\"\nsize = \"2MB\"\n",
        );
    assert_eq!(over.unwrap().resolved_toml(), folder.load(&whole).unwrap().resolved_toml());
    // A chain, and a topology of another kind.
    folder.write("middle.toml", "extends = \"base.toml\"\nname = \"middle\"\nstop = \"30ms\"\n");
    let over = folder
        .load("extends = \"middle.toml\"\nname = \"this\"\n[topology]\nkind = \"single-switch\"\nhosts = 3\n[schemes.two]\nintra = \"bbr\"\n")
        .unwrap();
    let text = over.resolved_toml();
    assert!(text.contains("30ms") && text.contains("single-switch") && !text.contains("extends"), "{text}");
    assert_eq!(over.runs().len(), 4);
    // Removed keys are gone from the complete chain, also if the file in the middle has a part of them, or none.
    folder.write("middle.toml", "extends = \"base.toml\"\nname = \"middle\"\n[schemes.one]\nlabel = \"One\"\n");
    let over =
        folder.load("extends = \"middle.toml\"\nname = \"this\"\nwithout = [\"schemes.one\", \"grid\"]\n").unwrap();
    assert_eq!(over.runs().len(), 1);
}

#[test]
fn errors_have_byte_ranges() {
    let folder = TestDir::new("mistakes");
    folder.write("around.toml", "name = \"around\"\nextends = \"this.toml\"\n");
    folder.write("bad.toml", &BASE.replace("1MB\"\necn", "1XB\"\necn"));
    for (text, location, name) in [
        ("extends = \"base.toml\"\n", "this.toml:1:11", ""),
        ("name = \"a\"\nextends = \"bas.toml\"\n", "this.toml:2:11", "bas.toml"),
        ("name = \"a\"\nextends = \"../base.toml\"\n", "this.toml:2:11", ""),
        ("name = \"a\"\nextends = \"around.toml\"\n", "this.toml:2:11", ""),
        ("name = \"a\"\nextends = \"base.toml\"\nwithout = [\"schemes.three\"]\n", "this.toml:3:12", "`schemes.three`"),
        ("name = \"a\"\nwithout = [\"grid\"]\n", "this.toml:2:12", "`extends`"),
        ("name = \"a\"\nextends = \"base.toml\"\n[schemes.one]\nlow = \"bbr\"\n", "this.toml:4:1", "`low`"),
        ("name = \"a\"\nextends = \"bad.toml\"\n", "bad.toml:10:10", "1XB"),
        ("name = \"a\"\nextends = 3\n", "this.toml:2:11", ""),
    ] {
        let error = folder.load(text).map(drop).unwrap_err();
        points_at(&error, location, &[name]);
    }
}

/// One law with parameters of its own for each class of flows.
#[test]
fn classes_of_flows_have_parameters_of_their_own() {
    let folder = TestDir::new("classes");
    let with = |params: &str| {
        folder.load(&format!("extends = \"base.toml\"\nname = \"this\"\nwithout = [\"schemes\", \"grid\"]\n[schemes.s]\nlaw = \"dctcp\"\n{params}"))
    };
    let built = with("params.dctcp = { ewma_gain = 0.25 }\ninter_params = { ewma_gain = 0.5 }\n").unwrap().runs()[0]
        .build()
        .unwrap();
    let g = |class| built.laws.law(class).unwrap().1.to_vec();
    assert_eq!(g(FlowClass::Intra), [("ewma_gain", ParamValue::Fraction(Frac::from_bits(1 << 30)))]);
    assert_eq!(g(FlowClass::Inter), [("ewma_gain", ParamValue::Fraction(Frac::HALF))]);
    let error = with("intra_params = { h = 0.5 }\n").and_then(|it| it.runs()[0].build().map(drop));
    points_at(&error.unwrap_err(), "this.toml:6:18", &["DCTCP", "`h`"]);
}
