--- What the servers say of themselves (`fimble/status`), and how it is put into words.

local M = {}

---@class fimble.Status
---@field state "starting"|"loading"|"ready"|"busy"|"error"|"disabled"
---@field message string
---@field model string
---@field provider string
---@field budget? { prompt: integer, answer: integer, floor: integer, ceiling: integer }

---@type table<integer, fimble.Status> by client
local told = {}

--- The handler of `fimble/status`. Runs `User FimbleStatus`, so that statuslines can follow.
---@param _ any
---@param status fimble.Status
---@param context lsp.HandlerContext
function M.hear(_, status, context)
  told[context.client_id] = status
  vim.api.nvim_exec_autocmds("User", { pattern = "FimbleStatus", data = status, modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

---@param client_id integer
function M.forget(client_id)
  told[client_id] = nil
end

---@param client_id integer
---@return fimble.Status?
function M.of(client_id)
  return told[client_id]
end

--- See |fimble.statusline()|.
---@param buf integer
---@return string
function M.line(buf)
  local client = require("fimble.client").of(buf)
  if not client then
    return ""
  end
  local status = told[client.id]
  local state = status and status.state or "starting"
  local shown = state == "disabled" and "off" or state
  if not require("fimble.suggestions").enabled() then
    shown = "off"
  end
  return status and status.model ~= "" and ("fimble: %s (%s)"):format(shown, status.model)
    or "fimble: " .. shown
end

--- All that is known, a line each.
---@param client vim.lsp.Client
---@return string[]
function M.lines(client)
  local status = told[client.id]
  if not status then
    return { "fimble: starting" }
  end
  local lines = { ("fimble: %s %s"):format(status.state, status.message) }
  if status.model ~= "" then
    table.insert(lines, ("model: %s on %s"):format(status.model, status.provider))
  end
  local budget = status.budget
  if type(budget) == "table" then
    local text = "prompts of %d tokens (%d to %d), answers of %d"
    table.insert(lines, text:format(budget.prompt, budget.floor, budget.ceiling, budget.answer))
  end
  local enabled = require("fimble.suggestions").enabled()
  table.insert(lines, "suggestions: " .. (enabled and "on" or "off"))
  return lines
end

return M
