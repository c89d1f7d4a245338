//! nginx with the same answers as files, if it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::answers;
use bench::Process;

/// What nginx calls itself; none if it is not installed.
pub(crate) fn version() -> Option<String> {
    let said = Command::new("nginx").arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Some(text.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// Serves recorded answers from files, in one process.
pub(crate) fn serve(file: &Path, folder: &Path) -> Process {
    let root = folder.join("files");
    for answer in answers::read(file) {
        let path = root.join(answer.path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path.with_extension("gz"), &answer.gzip).expect("written");
        std::fs::write(&path, &answer.plain).expect("written");
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let at = folder.display();
    let text = format!(
        "daemon off; master_process off; pid {at}/nginx.pid; error_log stderr; \
         events {{ worker_connections 4096; }} \
         http {{ access_log off; default_type application/json; keepalive_requests 100000000; tcp_nodelay on; \
         client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; \
         uwsgi_temp_path {at}/u; scgi_temp_path {at}/s; gzip_static on; sendfile on; \
         add_header Cache-Control 'private, no-cache'; add_header Vary 'Accept-Encoding, Authorization'; \
         add_header X-Request-Id 00000000-0000-0000-0000-000000000000; \
         server {{ listen {port}; root {}; keepalive_timeout 75; }} }}",
        root.display()
    );
    let config = folder.join("nginx.conf");
    std::fs::write(&config, text).expect("written");
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&config).arg("-p").arg(folder).stderr(Stdio::null()).stdout(Stdio::null());
    Process::at(&mut command, &port.to_string())
}
