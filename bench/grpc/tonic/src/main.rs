// The same answers as grpc_raw_server's, on tonic and a runtime of one thread.
//   grpc_tonic_server PORT MESSAGES MESSAGE_BYTES STEP_MS
use std::convert::Infallible;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, BoxStream, Context, Poll, Service};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Request, Response, Status};

// Messages are bytes, as they are to the other servers.
#[derive(Default)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = BytesCodec;
    type Decoder = BytesCodec;

    fn encoder(&mut self) -> BytesCodec {
        BytesCodec
    }
    fn decoder(&mut self) -> BytesCodec {
        BytesCodec
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[derive(Clone)]
struct Echo {
    messages: usize,
    message: Bytes,
    steps: Option<watch::Receiver<()>>, // one for all streams; none: all messages at once
}

impl ServerStreamingService<Bytes> for Echo {
    type Response = Bytes;
    type ResponseStream = BoxStream<Bytes>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        let message = self.message.clone();
        let stream: Self::ResponseStream = match &self.steps {
            None => Box::pin(tokio_stream::iter(vec![Ok(message); self.messages])),
            Some(steps) => Box::pin(
                WatchStream::from_changes(steps.clone())
                    .take(self.messages)
                    .map(move |()| Ok(message.clone())),
            ),
        };
        Box::pin(async { Ok(Response::new(stream)) })
    }
}

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let echo = self.clone();
        Box::pin(async move { Ok(Grpc::new(BytesCodec).server_streaming(echo, request).await) })
    }
}

async fn serve(port: u16, messages: usize, size: usize, step: Duration) -> Result<(), tonic::transport::Error> {
    let message = Bytes::from(vec![b'x'; size]);
    let steps = (!step.is_zero()).then(|| {
        let (sender, receiver) = watch::channel(());
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(step);
            loop {
                clock.tick().await;
                sender.send_replace(());
            }
        });
        receiver
    });
    tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .max_concurrent_streams(1024)
        .add_service(Echo { messages, message, steps })
        .serve(([127, 0, 0, 1], port).into())
        .await
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [port, messages, size, step] = numbers[..] else {
        return Err("grpc_tonic_server PORT MESSAGES MESSAGE_BYTES STEP_MS".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(port as u16, messages as usize, size as usize, Duration::from_millis(step)))?;
    Ok(())
}
