--- Suggestions, whoever draws them: Neovim's own inline completion where there is one (0.12), or
--- ours. Both have the same keys.

local client_module = require("fimble.client")
local options = require("fimble.options")

local M = {}

---@class fimble.Backend
---@field attach fun(client: vim.lsp.Client, buf: integer)
---@field enable fun(enabled: boolean)
---@field visible fun(buf: integer): boolean
---@field accept fun(buf: integer, part: fimble.Part): string keys to be typed
---@field cycle fun(buf: integer, step: 1|-1)
---@field dismiss fun(buf: integer)
---@field ask_again fun(buf: integer) as when something was typed
---@field trigger fun(buf: integer)

---@type boolean?
local enabled

---@return fimble.Backend
local function backend()
  return require(vim.lsp.inline_completion and "fimble.builtin" or "fimble.ghost")
end

--- Whether suggestions are shown.
---@return boolean
function M.enabled()
  if enabled == nil then
    enabled = options.current.suggestions
  end
  return enabled
end

---@param on boolean
function M.enable(on)
  enabled = on
  backend().enable(on)
end

---@param client vim.lsp.Client
---@param buf integer
function M.attach(client, buf)
  backend().attach(client, buf)
  backend().enable(M.enabled())
end

--- The handler of `fimble/suggestionGrew`: what is shown is asked for again, where it still is.
---@param _ any
---@param grown { uri: string, position: lsp.Position }
---@param context lsp.HandlerContext
function M.on_grown(_, grown, context)
  local buf = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not client or vim.uri_from_bufnr(buf) ~= grown.uri or not backend().visible(buf) then
    return
  end
  local here = vim.lsp.util.make_position_params(0, client.offset_encoding).position
  if vim.deep_equal(here, grown.position) then
    backend().ask_again(buf)
  end
end

---@type table<fimble.Action, fimble.Part>
local PARTS = { accept = "all", accept_word = "word", accept_line = "line" }

--- Whether an item of the popup menu is selected: keys are about that one then.
---@return boolean
local function is_menu_in_use()
  return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected ~= -1
end

--- Does what a key is for. Called from an `<expr>` map.
---@param action fimble.Action
---@return string? keys to be typed; nil if the key has to do what it did before
function M.on_key(action)
  local buf = vim.api.nvim_get_current_buf()
  local shown = backend()
  if not client_module.of(buf) then
    return nil
  end
  if action == "trigger" then
    vim.schedule(function()
      shown.trigger(buf)
    end)
    return ""
  end
  if not shown.visible(buf) or is_menu_in_use() then
    return nil
  end
  if PARTS[action] then
    return shown.accept(buf, PARTS[action])
  end
  vim.schedule(function()
    if action == "dismiss" then
      shown.dismiss(buf)
    else
      shown.cycle(buf, action == "next" and 1 or -1)
    end
  end)
  return ""
end

return M
