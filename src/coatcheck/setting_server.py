"""The settings of the server itself: where it listens, its certificate, and what it holds and waits for."""

from pydantic import BaseModel

from coatcheck.core import limits
from coatcheck.setting_values import DURATION, SERVER, PublicUrl, ReadableFile, Seconds, setting


class ServerSettings(BaseModel):
    """Mixed into Settings."""

    host: str = setting(
        "127.0.0.1",
        SERVER,
        "an address or a host name",
        "The address to listen on. Addresses that other machines can reach need `auth` to be set.",
        min_length=1,
    )
    port: int = setting(
        8080, SERVER, "a whole number from 0 to 65535", "The port to listen on; 0 takes a free one.", ge=0, le=65535
    )
    public_url: PublicUrl | None = setting(
        None,
        SERVER,
        "an http or https URL without query, which may carry a path",
        "What clients call the server, for absolute links; without it links begin with a slash.",
        "https://jobs.example.org/api",
    )
    tls_cert: ReadableFile | None = setting(
        None, SERVER, "a readable PEM file", "The server's certificate with its chain; turns TLS on.", "server.pem"
    )
    tls_key: ReadableFile | None = setting(
        None,
        SERVER,
        "a readable PEM file",
        "The certificate's private key, when it is not in the same file.",
        "server.key",
    )
    tls_client_ca: ReadableFile | None = setting(
        None,
        SERVER,
        "a readable PEM file",
        "Clients must show a certificate signed by one of these authorities.",
        "clients.pem",
    )
    connections_max: int = setting(
        limits.CONNECTIONS_DEFAULT,
        SERVER,
        f"a whole number from 1 to {limits.CONNECTIONS_MAX}",
        "Connections held at once; a new one takes the place of the one that has been idle longest.",
        ge=1,
        le=limits.CONNECTIONS_MAX,
    )
    headers_bytes_max: int = setting(
        limits.REQUEST_HEAD_BYTES_DEFAULT,
        SERVER,
        f"a whole number from {limits.REQUEST_HEAD_BYTES_MIN} to {limits.REQUEST_HEAD_BYTES_MAX}",
        "Bytes of a request's line and headers together; more are answered with 431.",
        ge=limits.REQUEST_HEAD_BYTES_MIN,
        le=limits.REQUEST_HEAD_BYTES_MAX,
    )
    headers_timeout_s: Seconds = setting(
        10.0, SERVER, DURATION, "How long a client may take to send a request's headers.", gt=0, le=600
    )
    body_timeout_s: Seconds = setting(
        30.0, SERVER, DURATION, "How long a client may take to send a request's body.", gt=0, le=3600
    )
    keep_alive_s: Seconds = setting(
        75.0, SERVER, DURATION, "How long an idle connection stays open for a next request.", gt=0, le=3600
    )
