//! Laws that stay when the process that loaded them ends: links and maps pinned in the BPF file system.
