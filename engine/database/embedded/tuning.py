"""The server's settings, each with its reason. They are arguments at every start and not a file,
so that an update of the program changes them and nobody has to edit anything.
"""

from __future__ import annotations

import os
from pathlib import Path

_MB = 1024 * 1024
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - asked for its size only


def arguments() -> list[str]:
    """`-c name=value` for every setting that differs from PostgreSQL's own default."""
    return [part for name, value in _settings(_memory()).items() for part in ("-c", f"{name}={value}")]


def _settings(memory: int) -> dict[str, str]:
    maintenance = _between(memory // 8, 128 * _MB, 1024 * _MB)
    return {
        # Socket only, in the data folder, which is 0700: no port, no password, nobody else.
        "listen_addresses": "",
        "unix_socket_directories": ".",
        "unix_socket_permissions": "0700",
        "port": "5432",  # only a part of the socket's name
        "shared_buffers": _megabytes(_between(memory // 16, 64 * _MB, 256 * _MB)),
        "effective_cache_size": _megabytes(memory // 2),
        # Ranking hashes tens of thousands of postings; 4 MB would spill them to disk.
        "work_mem": "32MB",
        # An HNSW index that does not fit while it is built takes three times as long.
        "maintenance_work_mem": _megabytes(maintenance),
        "dynamic_shared_memory_type": _shared_memory_type(maintenance),
        # First indexing writes hundreds of MB at once: fewer, longer checkpoints.
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "wal_compression": "on",
        # Nobody replicates an embedded server; a table filled where it was made skips the WAL.
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_logical_replication_workers": "0",
        # The index could be rebuilt, memory and knowledge could not: commits stay durable, and
        # bulk indexing turns this off for its own transactions.
        "synchronous_commit": "on",
        "jit": "off",  # compiling costs more than our queries
        "random_page_cost": "1.1",  # data is in memory or on an SSD
        "max_connections": "200",  # about ten a process, and a console may stay open in many places
        # A killed program's running query ends within seconds and frees its locks.
        "client_connection_check_interval": "2s",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %a ",
        "log_checkpoints": "off",
        # A statement may hold a note's text; a log should not.
        "log_min_error_statement": "panic",
        "cluster_name": "noctuary",
    }


def _between(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _megabytes(size: int) -> str:
    return f"{size // _MB}MB"


def _memory() -> int:
    """Bytes of memory this system or this container has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP_LIMIT.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _shared_memory_type(wanted: int) -> str:
    """Containers often have a /dev/shm of 64 MB, in which a parallel index build fails."""
    try:
        status = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return "posix"
    return "posix" if status.f_bavail * status.f_frsize >= 2 * wanted else "mmap"
