--- The language server as Neovim's client sees it: its configuration, requests, and its coming
--- back when it died. Knows nothing of what is shown.

local options = require("fimble.options")
local program = require("fimble.program")
local status = require("fimble.status")

local M = {}

local NAME = "fimble"
--- How the tokens of what is streamed to us begin; no server makes such ones.
local STREAM = "fimble-nvim-"
--- A server that dies so often in so many seconds is not started again.
local MOST_RESTARTS, RESTARTS_WITHIN = 5, 180

---@type table<integer, table<integer, true>> buffers by client
local attached = {}
---@type number[] seconds
local restarts = {}
---@type table<integer, true> clients that are ended to be started again
local wanted_again = {}
---@type table<integer|string, fun(value: any)> by progress token
local streams = {}
local tokens = 0

--- The server of a buffer.
---@param buf integer 0 for the current one
---@return vim.lsp.Client?
function M.of(buf)
  if buf == 0 then
    buf = vim.api.nvim_get_current_buf()
  end
  return vim.lsp.get_clients({ bufnr = buf, name = NAME })[1]
end

--- The server of a buffer, or else any: a chat is about a project, not about a buffer.
---@param buf integer
---@return vim.lsp.Client?
function M.any(buf)
  return M.of(buf) or vim.lsp.get_clients({ name = NAME })[1]
end

---@type table<integer, table<fun(problem: string?, result: any), true>> by client
local unanswered = {}

--- Asks the server. `done` is called once, also when the request is cancelled or the server ends:
--- Neovim itself forgets such requests without a word.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param done fun(problem: string?, result: any)
---@param buf? integer
---@return fun() cancel
function M.request(client, method, params, done, buf)
  unanswered[client.id] = unanswered[client.id] or {}
  local waiting = unanswered[client.id]
  local function finish(problem, result)
    if waiting[finish] then
      waiting[finish] = nil
      done(problem, result)
    end
  end
  waiting[finish] = true
  local ok, id = client:request(method, params, function(err, result)
    finish(err and err.message or nil, result)
  end, buf)
  if not ok then
    vim.schedule(function()
      finish("The server is not running.")
    end)
  end
  return function()
    if ok and id and waiting[finish] then
      client:cancel_request(id)
    end
    finish("Stopped.")
  end
end

--- A command of the server's (`workspace/executeCommand`).
---@param client vim.lsp.Client
---@param command string
---@param arguments any[]
---@param done? fun(problem: string?, result: any)
function M.execute(client, command, arguments, done)
  local params = { command = command, arguments = arguments }
  M.request(client, "workspace/executeCommand", params, done or function() end)
end

--- A request that streams partial results to `hear`.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param hear fun(value: any)
---@param done fun(problem: string?, result: any)
---@return fun() cancel
function M.stream(client, method, params, hear, done)
  tokens = tokens + 1
  local token = (STREAM .. "%d"):format(tokens)
  streams[token] = hear
  return M.request(
    client,
    method,
    vim.tbl_extend("force", params, { partialResultToken = token }),
    function(problem, result)
      streams[token] = nil
      done(problem, result)
    end
  )
end

local function on_progress(err, params, context)
  local hear = streams[params.token]
  if hear then
    hear(params.value)
  elseif not vim.startswith(tostring(params.token), STREAM) then
    vim.lsp.handlers["$/progress"](err, params, context)
  end
end

--- What the server tells the user. Neovim 0.11 itself would wait for a key after each message.
---@param _ any
---@param shown lsp.ShowMessageParams
local function on_message(_, shown)
  -- From 1 for an error to 4 for the log; Neovim counts the other way.
  vim.notify("fimble: " .. shown.message, vim.log.levels.ERROR + 1 - shown.type)
end

---@param client vim.lsp.Client
---@param buf integer
local function on_attach(client, buf)
  attached[client.id] = attached[client.id] or {}
  attached[client.id][buf] = true
  require("fimble.suggestions").attach(client, buf)
  require("fimble.keys").attach(buf)
  local function tell()
    if M.of(buf) then
      local position = vim.lsp.util.make_position_params(0, client.offset_encoding).position
      M.of(buf):notify("fimble/cursor", { uri = vim.uri_from_bufnr(buf), position = position })
    end
  end
  local group = vim.api.nvim_create_augroup("fimble.cursor." .. buf, {})
  vim.api.nvim_create_autocmd({ "CursorHold", "BufEnter" }, {
    group = group,
    buffer = buf,
    callback = tell,
  })
end

---@param config vim.lsp.ClientConfig
---@param buffers table<integer, true>
local function start(config, buffers)
  for buf in pairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buf) then
      vim.lsp.start(config, { bufnr = buf })
    end
  end
end

--- Starts a server like the one that died, for its buffers; later each time, and not for ever.
---@param config vim.lsp.ClientConfig
---@param buffers table<integer, true>
local function restart(config, buffers)
  local now = vim.uv.now() / 1000
  restarts = vim.tbl_filter(function(at)
    return now - at < RESTARTS_WITHIN
  end, restarts)
  if #restarts >= MOST_RESTARTS then
    vim.notify(
      "fimble: the server died again and again and is not restarted. "
        .. ":Fimble doctor may say why; :Fimble restart tries once more.",
      vim.log.levels.ERROR
    )
    return
  end
  local wait = options.current.restart_ms * 2 ^ #restarts
  table.insert(restarts, now)
  vim.notify(("fimble: the server ended; starting it again in %d ms."):format(wait))
  vim.defer_fn(function()
    start(config, buffers)
  end, wait)
end

---@param code integer
---@param signal integer
---@param client_id integer
local function on_exit(code, signal, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  local buffers = attached[client_id] or {}
  local again = wanted_again[client_id]
  attached[client_id], wanted_again[client_id] = nil, nil
  local was_meant = (code == 0 and signal == 0) or signal == 15
  vim.schedule(function()
    status.forget(client_id)
    for finish in pairs(unanswered[client_id] or {}) do
      finish("The server ended before it answered.")
    end
    unanswered[client_id] = nil
    if not client or vim.v.exiting ~= vim.NIL then
      return
    elseif again then
      start(client.config, buffers)
    elseif not was_meant then
      restart(client.config, buffers)
    end
  end)
end

--- Ends the servers and starts them again for the same buffers.
function M.restart()
  restarts = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    wanted_again[client.id] = true
    client:stop(true)
  end
  vim.lsp.enable(NAME)
end

--- Settings as they travel: an empty table would travel as a list.
---@return table
local function settings()
  local given = options.current.settings
  return { fimble = next(given) and given or vim.empty_dict() }
end

--- Tells the servers that run of the settings.
function M.tell_settings()
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    client.settings = settings()
    client:notify("workspace/didChangeConfiguration", { settings = client.settings })
  end
end

--- The entry for `vim.lsp.config`.
---@return vim.lsp.Config
function M.config()
  local given = options.current
  ---@type vim.lsp.Config
  return {
    name = NAME,
    cmd = program.server(),
    filetypes = given.filetypes,
    root_markers = options.root_markers,
    -- A file outside of any project needs no server of its own.
    reuse_client = function(client, config)
      local is_same = not config.root_dir or client.root_dir == config.root_dir
      return client.name == config.name and is_same
    end,
    settings = settings(),
    -- 0.11 does not know of inline completion; without this the server would offer its
    -- suggestions as completion items. What both versions do not tell, but can do: versioned
    -- changes, and so new files.
    capabilities = {
      workspace = { workspaceEdit = { documentChanges = true } },
      textDocument = { inlineCompletion = { dynamicRegistration = false } },
      experimental = {
        fimble = { promptForInstruction = true, previewEdits = true, suggestionGrew = true },
      },
    },
    commands = {
      ["fimble.promptEdit"] = function(command)
        require("fimble.edits").prompted(command)
      end,
      ["fimble.previewEdit"] = function(command)
        require("fimble.edits").make(command.arguments[1])
      end,
    },
    handlers = {
      ["fimble/status"] = status.hear,
      ["fimble/suggestionGrew"] = function(...)
        require("fimble.suggestions").on_grown(...)
      end,
      ["$/progress"] = on_progress,
      ["window/showMessage"] = on_message,
    },
    on_attach = on_attach,
    on_exit = on_exit,
  }
end

return M
