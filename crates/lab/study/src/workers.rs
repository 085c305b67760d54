//! Parallel work with a given number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the results of `work` for each of `count` numbers, in order, from `workers` threads.
pub(crate) fn run_parallel<T: Send>(workers: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            lock(&done)[number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(count) {
            scope.spawn(worker);
        }
        worker();
    });
    inner(done).into_iter().flatten().collect()
}

pub(crate) fn inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of threads: one per core, unless specified.
pub(crate) fn threads(requested: Option<u16>) -> usize {
    requested.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from)
}
