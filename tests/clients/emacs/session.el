;;; session.el --- What a user of eglot does, without a screen.  -*- lexical-binding: t -*-

;; emacs -q --batch -l CONFIGURATION -l session.el FILE ACTION: takes the suggestion at the end of
;; line 2, saves, then takes the code action whose title begins with ACTION, and saves again.

(require 'eglot)
(setq eglot-connect-timeout 300
      eglot-sync-connect 300
      eglot-confirm-server-initiated-edits nil
      jrpc-default-request-timeout 300
      make-backup-files nil
      create-lockfiles nil)

(defun fimble-test-await (what)
  "Wait until the function WHAT gives something, and give it."
  (let (found)
    (while (not (setq found (funcall what)))
      (accept-process-output nil 0.05))
    found))

(defun fimble-test-candidates ()
  "What is offered at point."
  (pcase (eglot-completion-at-point)
    (`(,begin ,end ,table . ,_)
     (all-completions (buffer-substring begin end) table))))

(let ((file (pop command-line-args-left))
      (title (pop command-line-args-left)))
  (find-file file)
  (apply #'eglot (eglot--guess-contact))
  (goto-char (point-min))
  (end-of-line 2)
  (fimble-test-await #'fimble-test-candidates)
  (completion-at-point)
  (save-buffer)
  (princ (format "completed: %s\n" (thing-at-point 'line t)))
  (let* ((actions (fimble-test-await
                   (lambda () (eglot-code-actions (point-min) (line-end-position)))))
         (action (seq-find (lambda (each) (string-prefix-p title (plist-get each :title)))
                           actions))
         (command (plist-get action :command))
         (before (buffer-string)))
    (eglot-execute-command (eglot-current-server)
                           (intern (plist-get command :command))
                           (plist-get command :arguments))
    (fimble-test-await (lambda () (not (equal before (buffer-string)))))
    (save-buffer)
    (princ (format "took: %s\n" (plist-get action :title))))
  (eglot-shutdown (eglot-current-server))
  (kill-emacs 0))
