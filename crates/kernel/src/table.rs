// The laws that are built for the kernel, one row each: name in files, type in `laws`, whether the law listens to
// marks. Included where rows are turned into something: the kernel's program, its build, the loader.
rows! {
    "gemini" => Gemini, true;
    "unocc" => UnoCc, true;
    "dctcp" => Dctcp, true;
    "mprdma" => MpRdma, true;
    "cubic" => Cubic, false;
    "newreno" => NewReno, false;
    "fixed" => Fixed, false;
}
