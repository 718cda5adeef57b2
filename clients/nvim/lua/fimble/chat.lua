--- Chat in a split: what was said above, what is being written below. The conversation itself is
--- the server's.

local client_module = require("fimble.client")
local preview = require("fimble.preview")
local windows = require("fimble.windows")

local M = {}

local SAID, INPUT = "fimble://chat", "fimble://chat/message"

---@class fimble.Chat
---@field conversation integer
---@field attachments table[] for the next message
---@field encoding string
---@field blocks { first: integer, last: integer, block: table }[] code of the answers, by lines
---@field stop? fun()
local chat = { conversation = 1, attachments = {}, encoding = "utf-16", blocks = {} }

---@return integer buf
local function said_buffer()
  return vim.fn.bufnr("^" .. SAID .. "$")
end

--- Adds text at the end of what was said; windows that show the end follow.
---@param text string
local function append(text)
  local buf = said_buffer()
  if buf == -1 then
    return
  end
  vim.bo[buf].modifiable = true
  local last = vim.api.nvim_buf_line_count(buf)
  local length = #vim.api.nvim_buf_get_lines(buf, last - 1, last, true)[1]
  vim.api.nvim_buf_set_text(buf, last - 1, length, last - 1, length, vim.split(text, "\n"))
  vim.bo[buf].modifiable = false
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if vim.api.nvim_win_get_cursor(win)[1] == last then
      vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
    end
  end
end

--- Where the answer's blocks stand, by their text.
---@param blocks table[]
---@param first integer the answer's first line, from 1
local function locate(blocks, first)
  local lines = vim.api.nvim_buf_get_lines(said_buffer(), 0, -1, true)
  local at = first
  for _, block in ipairs(blocks) do
    local wanted = vim.split((block.text:gsub("\n$", "")), "\n")
    for index = at, #lines - #wanted + 1 do
      if vim.deep_equal(vim.list_slice(lines, index, index + #wanted - 1), wanted) then
        at = index + #wanted
        table.insert(chat.blocks, { first = index - 1, last = at, block = block })
        break
      end
    end
  end
end

--- What an answer was made of, and what was left out.
---@param result table
---@return string
local function footnotes(result)
  local notes = {} ---@type string[]
  for _, used in ipairs(result.context or {}) do
    table.insert(notes, ("> used: %s: %s"):format(used.path, used.reason))
  end
  for _, out in ipairs(result.left_out or {}) do
    table.insert(notes, vim.trim(("> left out: %s %s"):format(out.path, out.reason)))
  end
  return #notes > 0 and "\n\n" .. table.concat(notes, "\n") or ""
end

--- Sends a message; the answer streams into the window.
---@param message string
function M.send(message)
  local client = client_module.any(vim.api.nvim_get_current_buf())
  if not client or chat.stop then
    local why = chat.stop and "an answer is being made (<C-c> stops it)."
      or "no server runs (:checkhealth fimble)."
    vim.notify("fimble: " .. why, vim.log.levels.WARN)
    return
  end
  append("## " .. message:gsub("\n", "\n   ") .. "\n\n")
  local first, heard = vim.api.nvim_buf_line_count(said_buffer()), false
  local params = {
    message = message,
    conversation = tostring(chat.conversation),
    attachments = chat.attachments,
  }
  chat.encoding, chat.attachments = client.offset_encoding, {}
  chat.stop = client_module.stream(client, "fimble/chat", params, function(value)
    heard = true
    append(value.text)
  end, function(problem, result)
    chat.stop = nil
    if problem then
      append((heard and "\n\n" or "") .. "> " .. problem:gsub("\n", "\n> ") .. "\n\n")
      return
    end
    -- A command such as /help is answered without streaming.
    append((heard and "" or result.text) .. footnotes(result) .. "\n\n")
    if said_buffer() ~= -1 then
      locate(result.blocks or {}, first)
    end
  end)
end

--- Ends the answer that is being made.
---@return boolean whether there was one
function M.stop()
  local stop = chat.stop
  if stop then
    stop()
  end
  return stop ~= nil
end

--- Shows what the code under the cursor would change where it belongs.
local function apply()
  local row = vim.api.nvim_win_get_cursor(0)[1]
  for _, each in ipairs(chat.blocks) do
    if row >= each.first and row <= each.last then
      local block = each.block
      local client = client_module.any(0)
      if type(block.uri) ~= "string" or type(block.range) ~= "table" or not client then
        vim.notify("fimble: it is not known where this code belongs.", vim.log.levels.WARN)
        return
      end
      local params =
        { uri = block.uri, range = block.range, version = block.version, text = block.text }
      client_module.request(client, "fimble/apply", params, function(problem, result)
        if problem then
          vim.notify("fimble: " .. problem, vim.log.levels.WARN)
        else
          preview.show(result.edit, chat.encoding, { result.about })
        end
      end)
      return
    end
  end
  vim.notify("fimble: there is no code of an answer under the cursor.", vim.log.levels.WARN)
end

---@type table[] what the server found at the first call
local found = {}

--- A message's names and slash commands, as the server completes them ('omnifunc', which is called
--- twice: the second time the line lacks what is completed).
---@param find_start 0|1
---@return integer|table[]
function M.complete(find_start)
  if find_start == 0 then
    return vim.tbl_map(function(item)
      return { word = item.text, menu = item.detail }
    end, found)
  end
  local client = client_module.any(0)
  local line = vim.api.nvim_get_current_line()
  local col = vim.api.nvim_win_get_cursor(0)[2]
  local params = { text = line, character = vim.str_utfindex(line, "utf-16", col) }
  local answer = client and client:request_sync("fimble/chatComplete", params, 2000)
  local result = answer and answer.result
  if not result then
    return -3
  end
  found = result.items
  return vim.str_byteindex(line, "utf-16", result.start)
end

local function send_input()
  local buf = vim.api.nvim_get_current_buf()
  local message = vim.trim(table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, true), "\n"))
  if message ~= "" and not chat.stop then
    vim.api.nvim_buf_set_lines(buf, 0, -1, true, {})
  end
  if message ~= "" then
    M.send(message)
  end
end

local function open_input()
  local buf, win = windows.open(INPUT, "fimble-message", "belowright 3split")
  vim.wo[win].winfixheight = true
  vim.wo[win].winbar = "Message (<CR> sends, <C-j> a new line)"
  vim.bo[buf].omnifunc = "v:lua.require'fimble.chat'.complete"
  vim.keymap.set({ "n", "i" }, "<CR>", send_input, { buffer = buf, desc = "Send" })
  vim.keymap.set("i", "<C-j>", "<CR>", { buffer = buf, desc = "New line" })
  vim.keymap.set({ "n", "i" }, "<C-c>", M.stop, { buffer = buf, desc = "Stop the answer" })
end

--- Opens the chat; the cursor is where a message is written.
---@param attachments? table[] what the next message is about
function M.open(attachments)
  if attachments then
    chat.attachments = attachments
  end
  local buf, win = windows.open(SAID, "markdown", "botright vsplit")
  vim.bo[buf].modifiable = false
  vim.wo[win].wrap, vim.wo[win].linebreak = true, true
  vim.keymap.set("n", "a", apply, { buffer = buf, desc = "Apply the code under the cursor" })
  vim.keymap.set("n", "<C-c>", M.stop, { buffer = buf, desc = "Stop the answer" })
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, desc = "Close" })
  local last = vim.api.nvim_buf_line_count(buf)
  vim.api.nvim_win_set_cursor(win, { last, 0 })
  open_input()
end

--- Forgets what was said; the next message begins a conversation.
function M.clear()
  M.stop()
  chat.conversation = chat.conversation + 1
  chat.blocks = {}
  if said_buffer() ~= -1 then
    windows.fill(said_buffer(), {})
  end
end

return M
