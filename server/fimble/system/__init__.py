"""What differs between Windows, Linux and macOS, in one place.

Folders, file rights, atomic replacement, locks, detached processes, signals, memory,
PowerShell, consoles, file URIs and names. Everything else in the package calls this package and has
no branch on the platform. Every branch here takes the platform as a value, so that tests
reach each one.
"""

from fimble.system.files import (
    exclusive_lock,
    free_disk_bytes,
    read_private,
    replace_path,
    rewrite_file,
    write_private,
)
from fimble.system.folders import (
    config_dir,
    home,
    logs_dir,
    make_private_dir,
    models_dir,
    runtime_dir,
    templates_dir,
    user_folder,
)
from fimble.system.machine import (
    OperatingSystem,
    available_memory,
    memory_lock_limit,
    operating_system,
    port_options,
    use_utf8_console,
)
from fimble.system.processes import (
    NO_WINDOW,
    detached_options,
    is_alive,
    listens_on,
    no_core_dumps,
    open_handles,
    process_started_at,
    spawn_detached,
    start_of,
    stop_process,
)
from fimble.system.programs import (
    find_program,
    powershell_json,
)
from fimble.system.uris import (
    is_plain_name,
    path_from_uri,
    uri_from_path,
)

__all__ = [
    "NO_WINDOW",
    "OperatingSystem",
    "available_memory",
    "config_dir",
    "detached_options",
    "exclusive_lock",
    "find_program",
    "free_disk_bytes",
    "home",
    "is_alive",
    "is_plain_name",
    "listens_on",
    "logs_dir",
    "make_private_dir",
    "memory_lock_limit",
    "models_dir",
    "no_core_dumps",
    "open_handles",
    "operating_system",
    "path_from_uri",
    "port_options",
    "powershell_json",
    "process_started_at",
    "read_private",
    "replace_path",
    "rewrite_file",
    "runtime_dir",
    "spawn_detached",
    "start_of",
    "stop_process",
    "templates_dir",
    "uri_from_path",
    "use_utf8_console",
    "user_folder",
    "write_private",
]
