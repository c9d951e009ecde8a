//! DNS over a stream: addresses of a name. The stream goes through the tunnel, which carries no UDP.

use std::io;
use std::net::IpAddr;

use hickory_proto::ProtoError;
use hickory_proto::op::{Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_proto::serialize::binary::DecodeError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::resolver::Family;

/// A lookup failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The name or the query is not valid.
    #[error("the name is not valid in DNS")]
    Name(#[source] ProtoError),
    /// The stream failed.
    #[error("the connection to the DNS server failed")]
    Io(#[from] io::Error),
    /// The response is not one to a query of the lookup.
    #[error("the DNS server sent a response that is not one to the query")]
    Unrelated,
    /// The response is malformed.
    #[error("the DNS server sent a malformed response")]
    Malformed(#[source] DecodeError),
    /// The server knows no address.
    #[error("the DNS server responded: {0}")]
    Code(ResponseCode),
}

/// Looks up the addresses of an absolute name, IPv4 first. A name without addresses has none.
pub(crate) async fn lookup<S>(
    stream: &mut S,
    name: &str,
    family: Family,
) -> Result<Vec<IpAddr>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let types: &[RecordType] = match family {
        Family::Ipv4 => &[RecordType::A],
        Family::Any => &[RecordType::A, RecordType::AAAA],
    };
    let mut queries = Vec::new();
    for kind in types {
        queries.push(query(name, *kind)?);
    }
    let mut sent = Vec::new();
    for query in &queries {
        let bytes = query.to_vec().map_err(Error::Name)?;
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        sent.extend(length.to_be_bytes());
        sent.extend(bytes);
    }
    stream.write_all(&sent).await?;
    stream.flush().await?;

    let mut responses = Vec::new();
    for _ in &queries {
        responses.push(read(stream).await?);
    }
    addresses(&queries, &responses)
}

fn query(name: &str, kind: RecordType) -> Result<Message, Error> {
    let mut name = Name::from_ascii(name).map_err(Error::Name)?;
    name.set_fqdn(true);
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, kind));
    Ok(message)
}

/// The length prefix limits a message to 64 KiB.
async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Message, Error> {
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Message::from_vec(&bytes).map_err(Error::Malformed)
}

/// The addresses in the responses. A server may have addresses of one family, and an error for the other.
fn addresses(queries: &[Message], responses: &[Message]) -> Result<Vec<IpAddr>, Error> {
    let mut found = Vec::new();
    let mut failure = None;
    for query in queries {
        let id = query.metadata.id;
        let response = responses.iter().find(|it| it.metadata.id == id);
        let response = response.ok_or(Error::Unrelated)?;
        if response.metadata.message_type != MessageType::Response {
            return Err(Error::Unrelated);
        }
        match response.metadata.response_code {
            // Aliases are followed by the server: its answer ends with the addresses.
            ResponseCode::NoError => {
                found.extend(response.answers.iter().filter_map(|it| address(&it.data)));
            }
            code => failure = Some(code),
        }
    }
    match failure {
        Some(code) if found.is_empty() => Err(Error::Code(code)),
        _ => Ok(found),
    }
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::OpCode;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::CNAME;
    use proptest::prelude::*;
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A response with these addresses, of the type that the query asks for.
    fn response(query: &Message, code: ResponseCode, known: &[&str]) -> Message {
        let mut message = Message::response(query.metadata.id, OpCode::Query);
        message.metadata.response_code = code;
        let asked = &query.queries[0];
        for address in known {
            let data = match ip(address) {
                IpAddr::V4(address) => RData::A(address.into()),
                IpAddr::V6(address) => RData::AAAA(address.into()),
            };
            if data.record_type() == asked.query_type() {
                message.add_answer(Record::from_rdata(asked.name().clone(), 30, data));
            }
        }
        message
    }

    async fn write(stream: &mut DuplexStream, message: &Message) {
        let bytes = message.to_vec().unwrap();
        let length = u16::try_from(bytes.len()).unwrap();
        stream.write_all(&length.to_be_bytes()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    }

    /// Looks up a name at a server that answers with `answer`, the last query first.
    async fn ask(
        family: Family,
        answer: impl Fn(&Message) -> Message,
    ) -> Result<Vec<IpAddr>, Error> {
        // A small buffer splits messages.
        let (mut client, mut server) = duplex(7);
        let queries = if family == Family::Any { 2 } else { 1 };
        let serve = async {
            let mut asked = Vec::new();
            for _ in 0..queries {
                asked.push(read(&mut server).await.unwrap());
            }
            for query in asked.iter().rev() {
                assert!(query.metadata.recursion_desired);
                assert_eq!(query.queries[0].name().to_string(), "quay.io.");
                write(&mut server, &answer(query)).await;
            }
        };
        tokio::join!(lookup(&mut client, "quay.io", family), serve).0
    }

    #[tokio::test]
    async fn addresses_are_matched_to_queries() {
        let known = ["192.0.2.1", "2001:db8::1"];
        let found = ask(Family::Any, |query| {
            response(query, ResponseCode::NoError, &known)
        });
        assert_eq!(found.await.unwrap(), [ip(known[0]), ip(known[1])]);
        let found = ask(Family::Ipv4, |query| {
            response(query, ResponseCode::NoError, &known)
        });
        assert_eq!(found.await.unwrap(), [ip(known[0])]);
    }

    #[tokio::test]
    async fn aliases_are_skipped() {
        let found = ask(Family::Ipv4, |query| {
            let mut message = response(query, ResponseCode::NoError, &["192.0.2.1"]);
            let alias = CNAME(Name::from_ascii("b.").unwrap());
            let name = query.queries[0].name().clone();
            let alias = Record::from_rdata(name, 30, RData::CNAME(alias));
            message.answers.insert(0, alias);
            message
        });
        assert_eq!(found.await.unwrap(), [ip("192.0.2.1")]);
    }

    #[tokio::test]
    async fn an_error_for_one_family_is_ignored_if_the_other_has_addresses() {
        let found = ask(Family::Any, |query| {
            let code = match query.queries[0].query_type() {
                RecordType::AAAA => ResponseCode::ServFail,
                _ => ResponseCode::NoError,
            };
            response(query, code, &["192.0.2.1"])
        });
        assert_eq!(found.await.unwrap(), [ip("192.0.2.1")]);
    }

    #[tokio::test]
    async fn errors_of_the_server_are_reported() {
        let found = ask(Family::Any, |query| {
            response(query, ResponseCode::NXDomain, &[])
        });
        let error = found.await.unwrap_err();
        assert!(
            matches!(error, Error::Code(ResponseCode::NXDomain)),
            "{error}"
        );
        let found = ask(Family::Any, |query| {
            response(query, ResponseCode::NoError, &[])
        });
        assert_eq!(found.await.unwrap(), Vec::<IpAddr>::new());
    }

    #[tokio::test]
    async fn unrelated_responses_are_refused() {
        let other_id = ask(Family::Ipv4, |query| {
            let mut message = response(query, ResponseCode::NoError, &["192.0.2.1"]);
            message.metadata.id = query.metadata.id.wrapping_add(1);
            message
        });
        assert!(matches!(other_id.await, Err(Error::Unrelated)));
        let echo = ask(Family::Ipv4, Clone::clone);
        assert!(matches!(echo.await, Err(Error::Unrelated)));
    }

    #[tokio::test]
    async fn a_closed_connection_is_an_error() {
        let (mut client, server) = duplex(512);
        drop(server);
        let found = lookup(&mut client, "quay.io", Family::Ipv4).await;
        assert!(matches!(found, Err(Error::Io(_))));
    }

    proptest! {
        /// Whatever a server sends is an answer or an error.
        #[test]
        fn any_response_is_handled(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(read(&mut bytes.as_slice()));
        }
    }
}
