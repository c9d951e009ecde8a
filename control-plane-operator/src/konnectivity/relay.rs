//! Copies bytes between a client and its target, until both have ended.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Size of the buffer of each direction. No more is read before it is written.
const BUFFER: usize = 16 * 1024;
/// How long one direction may be idle after the other has ended.
const HALF_CLOSED_IDLE: Duration = Duration::from_mins(1);
/// The same for a tunnel. It is short, because a client that has closed the connection looks like one that has sent all.
const HALF_CLOSED_TUNNEL_IDLE: Duration = Duration::from_secs(5);

/// What happens to the target when the client has sent all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Its direction is shut down, too.
    Shutdown,
    /// Nothing, because the tunnel would close both directions: the rest of the response would be lost.
    KeepOpen,
}

/// Copies until both directions have ended, one has failed, or one has ended and the other is idle.
pub(crate) async fn relay<C, T>(client: C, target: T, at_end: AtEnd) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Send,
    T: AsyncRead + AsyncWrite + Send,
{
    let (client_reader, client_writer) = tokio::io::split(client);
    let (target_reader, target_writer) = tokio::io::split(target);
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut up = std::pin::pin!(copy(client_reader, target_writer, at_end, &sent));
    let mut down = std::pin::pin!(copy(
        target_reader,
        client_writer,
        AtEnd::Shutdown,
        &received
    ));
    tokio::select! {
        ended = &mut up => {
            ended?;
            until_idle(down, &received, at_end.idle()).await
        }
        ended = &mut down => {
            ended?;
            until_idle(up, &sent, at_end.idle()).await
        }
    }
}

async fn copy<R, W>(
    mut reader: R,
    mut writer: W,
    at_end: AtEnd,
    copied: &AtomicU64,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        writer.write_all(&buffer[..length]).await?;
        writer.flush().await?;
        copied.fetch_add(length as u64, Ordering::Relaxed);
    }
    match at_end {
        AtEnd::Shutdown => writer.shutdown().await,
        AtEnd::KeepOpen => Ok(()),
    }
}

/// Waits for the other direction, while it moves bytes.
async fn until_idle(
    mut copying: Pin<&mut impl Future<Output = io::Result<()>>>,
    copied: &AtomicU64,
    idle: Duration,
) -> io::Result<()> {
    loop {
        let before = copied.load(Ordering::Relaxed);
        tokio::select! {
            ended = copying.as_mut() => return ended,
            () = tokio::time::sleep(idle) => {
                if copied.load(Ordering::Relaxed) == before {
                    return Ok(());
                }
            }
        }
    }
}

// === impl AtEnd ===

impl AtEnd {
    fn idle(self) -> Duration {
        match self {
            Self::Shutdown => HALF_CLOSED_IDLE,
            Self::KeepOpen => HALF_CLOSED_TUNNEL_IDLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    /// A relay, the client's end and the target's end.
    fn started(at_end: AtEnd) -> (JoinHandle<io::Result<()>>, DuplexStream, DuplexStream) {
        let (client, inner_client) = duplex(64);
        let (inner_target, target) = duplex(64);
        let relaying = tokio::spawn(relay(inner_client, inner_target, at_end));
        (relaying, client, target)
    }

    async fn text(stream: &mut DuplexStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_response_after_the_end_of_the_request_arrives() {
        for at_end in [AtEnd::Shutdown, AtEnd::KeepOpen] {
            let (relaying, mut client, mut target) = started(at_end);
            client.write_all(b"request").await.unwrap();
            client.shutdown().await.unwrap();
            let mut request = [0; 7];
            target.read_exact(&mut request).await.unwrap();
            if at_end == AtEnd::Shutdown {
                assert_eq!(target.read(&mut request).await.unwrap(), 0);
            }
            target.write_all(b"response").await.unwrap();
            drop(target);
            assert_eq!(text(&mut client).await, "response", "{at_end:?}");
            drop(client);
            relaying.await.unwrap().unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_closed_tunnel_is_not_shut_down_until_it_is_idle() {
        let (relaying, mut client, mut target) = started(AtEnd::KeepOpen);
        client.shutdown().await.unwrap();
        let begun = tokio::time::Instant::now();
        let ended = target.read(&mut [0; 1]).await.unwrap();
        assert_eq!((ended, begun.elapsed()), (0, HALF_CLOSED_TUNNEL_IDLE));
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn half_closed_connections_without_a_tunnel_have_more_time() {
        let (relaying, mut client, mut target) = started(AtEnd::Shutdown);
        client.shutdown().await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(target.read(&mut [0; 1]).await.unwrap(), 0);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        relaying.await.unwrap().unwrap();
        assert_eq!(begun.elapsed(), HALF_CLOSED_IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_responses_to_half_closed_clients_are_not_idle() {
        let (relaying, mut client, mut target) = started(AtEnd::KeepOpen);
        client.shutdown().await.unwrap();
        for _ in 0..5 {
            tokio::time::sleep(HALF_CLOSED_TUNNEL_IDLE * 2 / 3).await;
            target.write_all(b"a").await.unwrap();
            client.read_u8().await.unwrap();
        }
        drop(target);
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn open_connections_may_be_idle() {
        let (relaying, mut client, mut target) = started(AtEnd::KeepOpen);
        tokio::time::sleep(HALF_CLOSED_IDLE * 100).await;
        assert!(!relaying.is_finished());
        client.write_all(b"a").await.unwrap();
        assert_eq!(target.read_u8().await.unwrap(), b'a');
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stays_after_the_target_is_disconnected() {
        let (relaying, mut client, target) = started(AtEnd::KeepOpen);
        drop(target);
        assert_eq!(text(&mut client).await, "");
        relaying.await.unwrap().unwrap();
    }

    /// A target that does not read stops the client, instead of filling memory.
    #[tokio::test(start_paused = true)]
    async fn slow_targets_slow_clients_down() {
        let (_relaying, mut client, _target) = started(AtEnd::KeepOpen);
        let mut written = 0;
        loop {
            let writing = tokio::time::timeout(Duration::from_millis(100), client.write(&[0; 512]));
            match writing.await {
                Ok(length) => written += length.unwrap(),
                Err(_) => break,
            }
            assert!(written <= 2 * BUFFER, "{written}");
        }
        assert!(written >= 64, "{written}");
    }
}
