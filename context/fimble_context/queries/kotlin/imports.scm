(import (qualified_identifier) @import.source) @import
(import (qualified_identifier) @import.source (identifier) @import.alias) @import
(package_header) @package
