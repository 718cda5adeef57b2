-- The entry for vim.lsp.config: `vim.lsp.enable("fimble")` is all that is needed.
return require("fimble.client").config()
