(section
  (atx_heading heading_content: (_) @name)) @definition.heading
(setext_heading heading_content: (_) @name) @definition.heading
