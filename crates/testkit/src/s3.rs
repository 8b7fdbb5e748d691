//! An S3 server over a temporary folder, on a port of this machine.

use std::{net::SocketAddr, path::PathBuf};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::{net::TcpListener, runtime::Runtime};

/// The server; it ends when it is dropped. It has one bucket.
pub struct S3Server {
    address: SocketAddr,
    folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl S3Server {
    /// The only bucket.
    pub const BUCKET: &'static str = "library";
    /// The key that is accepted.
    pub const KEY: &'static str = "AKIDEXAMPLE";
    /// Its secret.
    pub const SECRET: &'static str = "wJalrXUtnFEMI";

    /// Starts a server with an empty bucket.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(Self::BUCKET)).expect("a bucket");
        let files = FileSystem::new(folder.path()).expect("a file system");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(Self::KEY, Self::SECRET));
        let service = builder.build();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
                tokio::spawn(connection);
            }
        });
        Self { address, folder, _runtime: runtime }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file that an object is in.
    pub fn file(&self, key: &str) -> PathBuf {
        self.folder.path().join(Self::BUCKET).join(key)
    }

    /// The folder of the bucket.
    pub fn bucket(&self) -> PathBuf {
        self.file("")
    }

    /// The environment that leads a program here, or to what stands before it.
    pub fn environment(address: SocketAddr) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", format!("http://{address}")),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", Self::KEY.into()),
            ("AWS_SECRET_ACCESS_KEY", Self::SECRET.into()),
        ]
    }
}
