--- fimble for Neovim: what a configuration calls. Everything else is in the modules beside it.

local options = require("fimble.options")

local M = {}

--- The plugin's release; the program's own is what `fimble --version` says.
M.version = "0.1.0"

--- Starts the server for every file; servers that run already get the new settings. Without it,
--- `vim.lsp.enable("fimble")` does the same with the options' defaults.
---@param given? fimble.Options
function M.setup(given)
  local problems = options.use(given)
  if #problems > 0 then
    vim.notify("fimble: setup: " .. table.concat(problems, " "), vim.log.levels.WARN)
  end
  local _, problem = require("fimble.program").command(options.current.cmd)
  if problem then
    vim.notify("fimble: " .. problem, vim.log.levels.WARN)
    return
  end
  local client = require("fimble.client")
  vim.lsp.config("fimble", client.config())
  client.tell_settings()
  vim.lsp.enable("fimble")
end

--- The server's state in a few words, for a statusline; empty where no server is.
---@param buf? integer
---@return string
function M.statusline(buf)
  return require("fimble.status").line(buf or 0)
end

return M
