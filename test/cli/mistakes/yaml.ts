import { changed, type Mistake } from './mistake.ts';

export const inYaml: readonly Mistake[] = [
  {
    mistake: 'a tab as indentation',
    files: {
      'suite.yaml': `suite:
	id: s
`,
    },
    printed: ['suite.yaml:2:1: a tab cannot indent a line: use spaces'],
  },
  {
    mistake: 'a tab after the first line of a text',
    files: {
      'suite.yaml': `suite:
  id: s
  prompt: |
    Do it.
	Now.
`,
    },
    printed: ['suite.yaml:5:1: a tab cannot indent a line: use spaces'],
  },
  {
    mistake: 'a key of a list item that begins one space too far left',
    files: {
      'suite.yaml': `suite:
  id: s
  prompt: p
cases:
  - id: a
   verify: "true"
`,
    },
    printed: ['suite.yaml:6:1: Sequence item without - indicator (check the indentation)'],
  },
  {
    mistake: 'braces without quotes',
    files: changed('suite.yaml', '"Do it."', '{{task}}'),
    printed: ['suite.yaml:1:25: quote a text that begins with braces: "{{task}}"'],
  },
  {
    mistake: 'braces without quotes, and more text',
    files: {
      'suite.yaml': `suite:
  id: s
  prompt: {{task}} now
`,
    },
    printed: ["suite.yaml:3:11: quote a text that begins with braces: '{{task}} now'"],
  },
  {
    mistake: 'braces without quotes in a list',
    files: changed('suite.yaml', '"true"\n', '"true"\n    artifacts:\n      - {{file}}\n'),
    printed: ['suite.yaml:8:9: quote a text that begins with braces: "{{file}}"'],
  },
  {
    mistake: 'a quote that is never closed',
    files: {
      'suite.yaml': `suite:
  id: "s
  prompt: p
variants: []
`,
    },
    printed: ['suite.yaml:2:7: a quote begins here and is never closed'],
  },
  {
    mistake: 'a quote that the next one closes',
    files: {
      'suite.yaml': `suite:
  id: "s
  prompt: "p"
variants: []
`,
    },
    printed: ['suite.yaml:2:7: a quote begins here and is never closed'],
  },
  {
    mistake: 'a line that is indented too far',
    files: {
      'suite.yaml': `suite:
  id: s
   prompt: p
`,
    },
    printed: ['suite.yaml:2:7: this line is indented too far, or its value has a colon: quote such a text'],
  },
  {
    mistake: 'a colon in a text',
    files: {
      'suite.yaml': `suite:
  id: s
  prompt: Note: do it
`,
    },
    printed: ['suite.yaml:3:11: this line is indented too far, or its value has a colon: quote such a text'],
  },
  {
    mistake: 'a bracket that is never closed',
    files: {
      'suite.yaml': `suite: { id: s, prompt: p
variants: []
`,
    },
    printed: ['suite.yaml:2:1: { is not closed before this line'],
  },
  {
    mistake: 'a key that is written twice',
    files: changed('suite.yaml', '"true"\n', '"true"\n    verify: "false"\n'),
    printed: ['suite.yaml:7:5: this key is written twice'],
  },
  {
    mistake: 'an alias without its anchor',
    files: changed('suite.yaml', '"Do it."', '*text'),
    printed: ['suite.yaml:1:25: *text has no anchor: there is no &text before it'],
  },
  {
    mistake: 'an empty suite',
    files: { 'suite.yaml': '' },
    printed: ['suite.yaml:1:1: expected keys with values, but this is empty'],
  },
];
