import { changed, type Mistake } from './mistake.ts';

export const inNames: readonly Mistake[] = [
  {
    mistake: 'a model that there is not',
    files: changed('suite.yaml', 'model: m', 'model: sonnet'),
    printed: [
      'suite.yaml:3:7: variants[0].model: "sonnet" is not a model of offsite.yaml; available: m; `offsite models add` adds one',
    ],
  },
  {
    mistake: 'a model when there is none',
    files: {
      'offsite.yaml': `{}
`,
    },
    printed: [
      'suite.yaml:3:7: variants[0].model: "m" is not a model of offsite.yaml; there is none; `offsite models add` adds one',
    ],
  },
  {
    mistake: 'a configuration above the suite where there is no git',
    files: {
      'evals/suite.yaml': `suite: { id: s, prompt: "Do it." }
variants:
  - { model: m, harness: bash }
cases:
  - id: a
    verify: "true"
`,
      '../elsewhere/x': '',
    },
    args: ['run', '../project/evals/suite.yaml'],
    from: '../elsewhere',
    printed: [
      '../project/evals/suite.yaml:3:7: variants[0].model: "m" is not a model: there is no offsite.yaml in PROJECT/evals, HOME/elsewhere or HOME/.config/offsite; name it with --config FILE',
    ],
  },
  {
    mistake: 'a harness with a typo',
    files: changed('suite.yaml', 'bash', 'claude_code'),
    printed: [
      'suite.yaml:3:17: variants[0].harness: "claude_code" is not a harness; did you mean "claude-code"? available: command, acp, bash, claude-code, cline, codex, copilot, gemini-cli, kimi, opencode, pi, qwen-code and 3 more',
    ],
  },
  {
    mistake: 'the beginning of a harness',
    files: changed('suite.yaml', 'bash', 'claude'),
    printed: [
      'suite.yaml:3:17: variants[0].harness: "claude" is not a harness; did you mean "claude-code"? available: command, acp, bash, claude-code, cline, codex, copilot, gemini-cli, kimi, opencode, pi, qwen-code and 3 more',
    ],
  },
  {
    mistake: 'a profile with a typo',
    files: changed('suite.yaml', 'bash', 'command, profile: wroker'),
    printed: [
      'suite.yaml:3:35: variants[0].profile: "wroker" is not a profile of offsite.yaml; did you mean "worker"? available: worker',
    ],
  },
  {
    mistake: 'a sandbox with a typo',
    files: changed('suite.yaml', 'bash', 'bash, sandbox: romy'),
    printed: [
      'suite.yaml:3:32: variants[0].sandbox: "romy" is not a sandbox of offsite.yaml; did you mean "roomy"? available: local, roomy',
    ],
  },
  {
    mistake: 'a command harness without a program',
    files: changed('suite.yaml', 'bash', 'command'),
    printed: ['suite.yaml:3:17: variants[0].harness: the command harness needs a profile with a run script'],
  },
  {
    mistake: 'a judge that there is not',
    files: changed('suite.yaml', 'cases', 'judges: [n]\ncases'),
    printed: [
      'suite.yaml:4:10: judges[0]: "n" is not a model of offsite.yaml; available: m; `offsite models add` adds one',
    ],
  },
];
