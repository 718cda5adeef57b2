--- Edits: asked of the server (`codeAction/resolve`), shown as a diff, made when accepted.

local client_module = require("fimble.client")
local place = require("fimble.place")
local preview = require("fimble.preview")

local M = {}

---@type fun()?
local stop

--- Ends the edit that is being made.
---@return boolean whether there was one
function M.stop()
  local running = stop
  stop = nil
  if running then
    running()
  end
  return running ~= nil
end

---@class fimble.EditData what an edit is made by; the server's own have more in them
---@field task string one of the server's tasks
---@field uri string
---@field range lsp.Range
---@field instruction? string what to do, for the task "custom"
---@field diagnostics? table[]

--- Has an edit made, and shows it. The server's command `fimble.previewEdit` has the data.
---@param data fimble.EditData
function M.make(data)
  local buf = vim.uri_to_bufnr(data.uri)
  local client = client_module.of(buf)
  if not client then
    vim.notify("fimble: no server runs for this file (:checkhealth fimble).", vim.log.levels.WARN)
    return
  end
  M.stop()
  local encoding = client.offset_encoding
  vim.api.nvim_echo({ { "fimble: working … (:Fimble stop)" } }, false, {})
  local params = { title = "fimble", data = data }
  local cancel
  cancel = client_module.request(client, "codeAction/resolve", params, function(problem, action)
    if stop == cancel then
      stop = nil
    end
    if problem then
      vim.notify("fimble: " .. problem, vim.log.levels.WARN)
    elseif action and action.edit then
      vim.api.nvim_echo({ { "" } }, false, {})
      preview.show(action.edit, encoding, M.notes(action.edit))
    end
  end, buf)
  stop = cancel
end

---@param task string one of the server's tasks
---@param instruction string? what to do, for the task "custom"
---@param buf integer
---@param range lsp.Range
function M.ask(task, instruction, buf, range)
  local client = client_module.of(buf)
  M.make({
    task = task,
    uri = vim.uri_from_bufnr(buf),
    range = range,
    instruction = instruction,
    diagnostics = client and place.diagnostics(buf, range, client.offset_encoding),
  })
end

--- What the server says of an edit, in its annotations.
---@param edit lsp.WorkspaceEdit
---@return string[]
function M.notes(edit)
  local notes = {} ---@type string[]
  for _, annotation in pairs(edit.changeAnnotations or {}) do
    table.insert(notes, annotation.label .. " " .. (annotation.description or ""))
  end
  return notes
end

--- Asks for an instruction, unless there is one, and then for the edit.
---@param instruction string
---@param buf integer
---@param range lsp.Range
function M.edit(instruction, buf, range)
  if instruction ~= "" then
    M.ask("custom", instruction, buf, range)
    return
  end
  vim.ui.input({ prompt = "Edit: " }, function(said)
    if said and vim.trim(said) ~= "" then
      M.ask("custom", said, buf, range)
    end
  end)
end

--- The server's command `fimble.promptEdit`, from its menu of code actions.
---@param command lsp.Command
function M.prompted(command)
  local given = command.arguments[1]
  M.edit("", vim.uri_to_bufnr(given.uri), given.range)
end

return M
