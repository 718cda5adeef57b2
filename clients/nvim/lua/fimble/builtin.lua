--- Suggestions on Neovim 0.12 and newer, which asks for them and draws them itself.

local client_module = require("fimble.client")
local insert = require("fimble.insert")

local M = {}

local METHOD = "textDocument/inlineCompletion"
local INVOKED, AUTOMATIC = 1, 2

--- Neovim's object for a buffer. It is no public API, so what needs it works without it, too,
--- only less well: `next` has nothing to show, what is left after a word comes a moment later, and
--- the rest of a block when its first line was accepted.
---@param buf integer
---@return table?
local function completor(buf)
  local ok, capability = pcall(require, "vim.lsp._capability")
  local kind = ok and capability.all and capability.all.inline_completion
  local found = kind and kind.active and kind.active[buf]
  if found and found.select and found.handler and found.count_items then
    return found
  end
end

--- Nothing to do for a buffer: Neovim does it for a client.
function M.attach() end

---@param on boolean
function M.enable(on)
  for _, client in ipairs(vim.lsp.get_clients({ name = "fimble" })) do
    vim.lsp.inline_completion.enable(on, { client_id = client.id })
  end
end

---@param buf integer
---@return boolean
function M.visible(buf)
  local drawn = vim.api.nvim_get_namespaces()["nvim.lsp.inline_completion"]
  return drawn ~= nil and #vim.api.nvim_buf_get_extmarks(buf, drawn, 0, -1, { limit = 1 }) > 0
end

--- An item of Neovim's as an offer; nil where it is not ours.
---@param item vim.lsp.inline_completion.Item
---@return fimble.Offer?
local function offer_of(item)
  local client = vim.lsp.get_client_by_id(item.client_id)
  if not client or client.name ~= "fimble" or not item.range then
    return nil
  end
  local start_row, start_col, stop_row, stop_col = item.range:to_extmark()
  local text, crlf = insert.plain(item.insert_text --[[@as string]])
  return {
    text = text,
    crlf = crlf,
    start = { start_row, start_col },
    stop = { stop_row, stop_col },
    client_id = item.client_id,
    command = item.command,
  }
end

--- What is left of an item goes on being shown, until the next answer.
---@param buf integer
---@param item vim.lsp.inline_completion.Item
local function keep(buf, item)
  local shown = completor(buf)
  if shown then
    shown.current = item
    shown:show()
  end
end

---@param buf integer
---@param part fimble.Part
---@return string
function M.accept(buf, part)
  local taken = vim.lsp.inline_completion.get({
    bufnr = buf,
    on_accept = function(item)
      local offer = offer_of(item)
      if not offer then
        return item
      end
      local stop = offer.stop
      local cursor = vim.api.nvim_win_get_cursor(0)
      -- The answer's range ends where the cursor was; what was typed since then is in front.
      if stop[1] == cursor[1] - 1 and stop[2] < cursor[2] then
        offer.stop = { stop[1], cursor[2] }
      end
      local whole = insert.take(buf, offer, part)
      vim.api.nvim_feedkeys(vim.keycode("<C-g>u"), "n", false)
      if not whole then
        keep(buf, item)
      end
    end,
  })
  return taken and "<C-g>u" or ""
end

---@param buf integer
---@param kind integer
---@param done fun(shown: table)
local function ask(buf, kind, done)
  local client, shown = client_module.of(buf), completor(buf)
  if not client or not shown then
    return
  end
  if shown.reset_timer then
    -- The newest request is the one that is answered: no other may follow this one.
    shown:reset_timer()
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  ---@cast params table
  params.context = { triggerKind = kind }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  client:request(METHOD, params, function(err, result, context)
    if not err and vim.api.nvim_buf_get_changedtick(buf) == tick then
      shown:handler(err, result, context)
      done(shown)
    end
  end, buf)
end

--- Shows another suggestion; asks for several where there is one.
---@param buf integer
---@param step 1|-1
function M.cycle(buf, step)
  local shown = completor(buf)
  if not shown or shown:count_items() > 1 then
    vim.lsp.inline_completion.select({ bufnr = buf, count = step })
    return
  end
  local before = shown.current and shown.current.insert_text
  ask(buf, INVOKED, function(now)
    local same = now.current and now.current.insert_text == before
    if step == -1 or same then
      vim.lsp.inline_completion.select({ bufnr = buf, count = step })
    end
  end)
end

---@param buf integer
function M.dismiss(buf)
  vim.lsp.inline_completion.get({ bufnr = buf, on_accept = function() end })
end

---@param buf integer
function M.trigger(buf)
  ask(buf, INVOKED, function() end)
end

---@param buf integer
function M.ask_again(buf)
  ask(buf, AUTOMATIC, function() end)
end

return M
