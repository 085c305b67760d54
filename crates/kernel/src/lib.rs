//! Laws in the kernel.
