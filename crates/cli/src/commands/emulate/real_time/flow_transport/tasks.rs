//! Many futures on one thread, which sleeps while none of them can go on.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks that can go on, and the thread that runs them.
struct Ready {
    tasks: Mutex<Vec<usize>>,
    thread: Thread,
}

/// The waker of one task.
struct TaskWaker {
    ready: Arc<Ready>,
    task: usize,
    is_woken: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.ready.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
            self.ready.thread.unpark();
        }
    }
}

/// Adds tasks, also from inside of one.
#[derive(Clone, Default)]
pub(super) struct Spawner(Rc<RefCell<Vec<Task>>>);

impl Spawner {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push(Box::pin(task));
    }
}

/// The tasks. They run on the thread that made this.
pub(super) struct Tasks {
    slots: Vec<Option<(Task, Arc<TaskWaker>)>>,
    ready: Arc<Ready>,
    spawned: Spawner,
}

impl Tasks {
    pub(super) fn new() -> Self {
        let ready = Arc::new(Ready { tasks: Mutex::default(), thread: thread::current() });
        Self { slots: Vec::new(), ready, spawned: Spawner::default() }
    }

    pub(super) fn spawner(&self) -> Spawner {
        self.spawned.clone()
    }

    /// Runs the tasks that can go on, each once; `after` is called after each. If none can, sleeps until one can, at
    /// most for `max_sleep`, and then runs them.
    pub(super) fn run(&mut self, max_sleep: Duration, mut after: impl FnMut()) {
        self.take_spawned();
        if self.ready().is_empty() {
            thread::park_timeout(max_sleep);
        }
        let ready = std::mem::take(&mut *self.ready());
        for index in ready {
            let Some((task, task_waker)) = self.slots[index].as_mut() else { continue };
            // Cleared before it runs, so that events during the run wake it again.
            task_waker.is_woken.store(false, Ordering::Release);
            let waker = Waker::from(task_waker.clone());
            if let Poll::Ready(()) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.slots[index] = None;
            }
            after();
        }
        self.take_spawned();
    }

    /// Forgets all tasks, wherever they are.
    pub(super) fn clear(&mut self) {
        self.spawned.0.borrow_mut().clear();
        self.slots.iter_mut().for_each(|task| *task = None);
    }

    fn take_spawned(&mut self) {
        for task in self.spawned.0.take() {
            let index = self.slots.len();
            let task_waker =
                Arc::new(TaskWaker { ready: self.ready.clone(), task: index, is_woken: AtomicBool::new(false) });
            self.slots.push(Some((task, task_waker.clone())));
            task_waker.wake();
        }
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.ready.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::peer::wait::pause;
    use study::Stopwatch;

    #[test]
    fn woken_tasks_alternate_and_others_are_not_polled() {
        let (mut tasks, log) = (Tasks::new(), Rc::new(RefCell::new(Vec::new())));
        for name in ["a", "b"] {
            let log = log.clone();
            tasks.spawner().spawn(async move {
                for _ in 0..2 {
                    log.borrow_mut().push(name);
                    pause().await;
                }
            });
        }
        tasks.spawner().spawn(std::future::pending());
        for _ in 0..5 {
            tasks.run(Duration::ZERO, || ());
        }
        assert_eq!(*log.borrow(), ["a", "b", "a", "b"]);
    }

    #[test]
    fn other_threads_wake_the_sleep_and_tasks_spawn_tasks() {
        let (mut tasks, done) = (Tasks::new(), Rc::new(Cell::new(false)));
        let (spawner, done_flag) = (tasks.spawner(), done.clone());
        let (sender, receiver) = std::sync::mpsc::channel::<Waker>();
        tasks.spawner().spawn(async move {
            let mut sender = Some(sender);
            std::future::poll_fn(|context| match sender.take() {
                Some(sender) => {
                    sender.send(context.waker().clone()).unwrap();
                    Poll::Pending
                }
                None => Poll::Ready(()),
            })
            .await;
            spawner.spawn(async move { done_flag.set(true) });
        });
        let (clock, timeout) = (Stopwatch::start(), Duration::from_mins(1));
        let other = thread::spawn(move || receiver.recv_timeout(timeout).unwrap().wake());
        for _ in 0..10 {
            tasks.run(timeout, || ());
            if done.get() {
                break;
            }
        }
        other.join().unwrap();
        assert!(done.get() && clock.elapsed() < timeout);
        tasks.clear();
    }
}
