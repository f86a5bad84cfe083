//! The files of an audit log: the current one, and older ones next to it.
//!
//! ```text
//! write ─► queue (QUEUE_RECORDS_MAX) ─► thread ─► FILE ── full ─► FILE.1 ─► FILE.2 ─► … ─► removed
//! ```
//! Invariants: together the files take at most their number times their size limit. A line is complete or absent: a
//! part of a line that was written to a full disk is truncated, and a line that a kill cut short is ended before the
//! next. Lines are passed to the operating system, not synced. A kill of the process loses those in the queue; a
//! failure of the machine loses those of the last seconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use helenus_base::metrics;
use helenus_base::permissions;

/// Most files of an audit log.
pub const FILES_MAX: usize = 1000;

/// Records that wait for the disk; further ones are lost. Each has at most some 50 KB.
const QUEUE_RECORDS_MAX: usize = 1024;

/// Why the audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be written: {}: {source}", path.display())]
pub struct AuditError {
    path: PathBuf,
    source: io::Error,
}

enum Message {
    Line(String),
    End,
}

/// Writes lines on its own thread.
pub(super) struct Writer {
    queue: SyncSender<Message>,
    /// Records lost since the last one written.
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn open(path: PathBuf, file_bytes_max: u64, files_max: usize) -> Result<Self, AuditError> {
        let failed = |source| AuditError {
            path: path.clone(),
            source,
        };
        let mut files = Files::open(&path, file_bytes_max, files_max).map_err(failed)?;
        let (queue, lines) = sync_channel(QUEUE_RECORDS_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let thread = std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn({
                let lost = Arc::clone(&lost);
                move || write_all(&mut files, &lines, &lost)
            })
            .map_err(failed)?;
        Ok(Self {
            queue,
            lost,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Queues a line. Never waits: if the queue is full the line is lost and counted.
    pub(super) fn write(&self, line: String) {
        if self.queue.try_send(Message::Line(line)).is_err() {
            lose(&self.lost);
        }
    }

    /// Writes all queued lines and ends the thread. Waits for the disk.
    pub(super) fn finish(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let is_sent = self.queue.send(Message::End).is_ok();
            if !is_sent || thread.join().is_err() {
                tracing::error!("the writer of the audit log ended early");
            }
        }
    }
}

fn lose(lost: &AtomicU64) {
    metrics::AUDIT_LOST.increment();
    lost.fetch_add(1, Ordering::Relaxed);
}

fn write_all(files: &mut Files, lines: &Receiver<Message>, lost: &AtomicU64) {
    let mut is_failing = false;
    while let Ok(Message::Line(line)) = lines.recv() {
        let before = lost.swap(0, Ordering::Relaxed);
        match files.write(before, &line) {
            Ok(()) => {
                if before > 0 {
                    tracing::error!(lost = before, "records of the audit log are lost");
                }
                is_failing = false;
            }
            Err(error) => {
                lost.fetch_add(before, Ordering::Relaxed);
                lose(lost);
                // Log once per failure: a full disk must not be filled with this message.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::error!(%error, path = %files.path.display(), "the audit log cannot be written: records are lost until it can");
                }
            }
        }
    }
    if let Err(error) = files.file.sync_data() {
        tracing::error!(%error, path = %files.path.display(), "the audit log could not be synced");
    }
}

/// The current file, and the older ones.
struct Files {
    path: PathBuf,
    file: File,
    bytes: u64,
    file_bytes_max: u64,
    files_max: usize,
}

impl Files {
    fn open(path: &Path, file_bytes_max: u64, files_max: usize) -> io::Result<Self> {
        let (file, bytes) = open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            file_bytes_max,
            files_max: files_max.clamp(1, FILES_MAX),
        })
    }

    /// Writes a line, after one that reports how many were lost before it.
    fn write(&mut self, lost: u64, line: &str) -> io::Result<()> {
        if lost > 0 {
            self.write_line(&format!(
                "{{\"type\":\"RECORDS_LOST\",\"category\":\"ERROR\",\"records\":{lost}}}\n{line}"
            ))
        } else {
            self.write_line(line)
        }
    }

    fn write_line(&mut self, line: &str) -> io::Result<()> {
        let line_bytes = line.len() as u64;
        if self.bytes > 0 && self.bytes.saturating_add(line_bytes) > self.file_bytes_max {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // A full disk may have taken a part.
            self.file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes += line_bytes;
        Ok(())
    }

    /// Moves the files to make way for a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let last = self.files_max - 1;
        if last == 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
            return Ok(());
        }
        for number in (1..last).rev() {
            absent_is_fine(fs::rename(self.numbered(number), self.numbered(number + 1)))?;
        }
        absent_is_fine(fs::rename(&self.path, self.numbered(1)))?;
        (self.file, self.bytes) = open(&self.path)?;
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Opens a file at its end, readable by its owner only. Returns its bytes, without an incomplete last line.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, permissions::PRIVATE);
    let mut file = options.open(path)?;
    let mut bytes = file.metadata()?.len();
    if bytes > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            bytes += 1;
        }
    }
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path)
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut files = Files::open(&path, 30, 3).unwrap();
        for number in 10..30 {
            files.write(0, &format!("line {number}\n")).unwrap();
        }
        let names = fs::read_dir(folder.path()).unwrap().count();
        let bytes: u64 = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert_eq!((names, bytes), (3, 8 * (3 + 3 + 2)));
        assert_eq!(lines(&path), ["line 28", "line 29"]);
        assert_eq!(lines(&folder.path().join("audit.log.2")).first().unwrap(), "line 22");
        // A single file is started afresh.
        let one = folder.path().join("one.log");
        let mut files = Files::open(&one, 10, 1).unwrap();
        files.write(0, "first\n").unwrap();
        files.write(0, "second\n").unwrap();
        assert_eq!(lines(&one), ["second"]);
    }

    #[test]
    fn a_line_that_a_kill_cut_ends_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "whole\nhal").unwrap();
        Files::open(&path, 1000, 2).unwrap().write(0, "next\n").unwrap();
        assert_eq!(lines(&path), ["whole", "hal", "next"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn records_lost_to_a_full_disk_are_counted_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(&folder.path().join("audit.log"), 1000, 2).unwrap();
        // The kernel's full device.
        let real = std::mem::replace(
            &mut files.file,
            OpenOptions::new().write(true).open("/dev/full").unwrap(),
        );
        let (queue, lines_of_queue) = sync_channel(8);
        let lost = AtomicU64::new(0);
        for _ in 0..3 {
            queue.send(Message::Line("line\n".to_owned())).unwrap();
        }
        queue.send(Message::End).unwrap();
        write_all(&mut files, &lines_of_queue, &lost);
        assert_eq!(lost.load(Ordering::Relaxed), 3);
        files.file = real;
        queue.send(Message::Line("line\n".to_owned())).unwrap();
        queue.send(Message::End).unwrap();
        write_all(&mut files, &lines_of_queue, &lost);
        assert_eq!(lost.load(Ordering::Relaxed), 0);
        assert_eq!(
            lines(&files.path),
            [r#"{"type":"RECORDS_LOST","category":"ERROR","records":3}"#, "line"]
        );
    }
}
