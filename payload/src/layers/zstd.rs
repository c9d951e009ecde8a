//! Decompresses zstd as a stream, frame by frame: seekable layers have many frames.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How much is unpacked at once.
const AT_ONCE: usize = 64 << 10;
/// The largest window of a frame, which is kept in memory.
const LARGEST_WINDOW: u64 = 64 << 20;

/// Unpacks what it reads.
pub(super) struct Decoder<R> {
    source: R,
    frame: Option<FrameDecoder>,
}

// === impl Decoder ===

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            frame: None,
        }
    }

    /// Decodes more bytes; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        match &mut self.frame {
            Some(frame) if !frame.is_finished() => {
                let strategy = BlockDecodingStrategy::UptoBytes(AT_ONCE);
                let decoded = frame.decode_blocks(&mut self.source, strategy);
                decoded.map_err(io::Error::other)?;
            }
            _ => {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                self.frame = self.next_frame()?;
            }
        }
        Ok(true)
    }

    /// The next frame; nothing if it is one that holds no data.
    fn next_frame(&mut self) -> io::Result<Option<FrameDecoder>> {
        let mut frame = self.frame.take().unwrap_or_else(|| {
            let mut frame = FrameDecoder::new();
            frame.set_max_window_size(LARGEST_WINDOW);
            frame
        });
        match frame.reset(&mut self.source) {
            Ok(()) => Ok(Some(frame)),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = self.source.by_ref().take(length.into());
                io::copy(&mut skipped, &mut io::sink())?;
                Ok(None)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = self.frame.as_mut().filter(|frame| frame.can_collect() > 0) {
                return frame.read(buffer);
            }
            if buffer.is_empty() || !self.advance()? {
                return Ok(0);
            }
        }
    }
}
