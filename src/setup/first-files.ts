import { stringify } from 'yaml';
import { jsonSchemas } from '../suite/json-schemas.ts';
import type { NewFile } from './new-files.ts';
import type { OfferedModel } from './offered-models.ts';
import type { Project } from './project.ts';

export interface FirstFiles {
  project: Project;
  models: readonly OfferedModel[];
  /** What the suite evaluates beside the rehearsal. Undefined if nobody chose it yet. */
  variant: { harness: string; model: string } | undefined;
}

/** The files that `offsite init` writes, relative to the project. */
export function firstFiles(parts: FirstFiles): NewFile[] {
  return [
    { path: 'offsite.yaml', content: configuration(parts) },
    { path: 'evals/suite.yaml', content: suite(parts) },
    { path: 'evals/rehearsal.yaml', content: rehearsal },
    ...schemas(),
  ];
}

/** What distinguishes the example from a case of the user's own. */
export const exampleCase = { id: 'greeting', prepare: 'echo hello > greeting.txt' };

const schemaFolder = 'evals/.schemas';

/** The JSON schemas with which editors complete and check the files. */
function schemas(): NewFile[] {
  const names = ['suite.schema.json', 'offsite.schema.json', 'script.schema.json'];
  return Object.entries(jsonSchemas({ compact: true }))
    .filter(([name]) => names.includes(name))
    .map(([name, schema]) => ({ path: `${schemaFolder}/${name}`, content: `${JSON.stringify(schema)}\n` }));
}

function configuration({ project, models }: FirstFiles): string {
  const found = models.map(
    ({
      name,
      found,
      config,
    }) => `  # ${found}. Choose the model that you want, then: offsite models check ${name}
  ${name}: ${inline(config)}
`,
  );
  const example = `  # A model of yours, for example:
  # local: { wire: openai-chat, baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3-coder:30b" }
  # claude: { wire: anthropic-messages, baseUrl: "https://api.anthropic.com/v1", apiKeyEnv: ANTHROPIC_API_KEY }
`;
  const outside = `
# What suites may read outside their own folder: this repository, of which \`offsite case add\` makes cases.
allowOutside: [.]
`;
  return `# yaml-language-server: $schema=${schemaFolder}/offsite.schema.json
#
# What this machine has: models, profiles, sandboxes. Keys stay in the environment; apiKeyEnv names their variable.

models:
  # Answers from a file. It needs no key and costs nothing.
  rehearsal: { scripted: evals/rehearsal.yaml }
${found.length > 0 ? found.join('') : example}
# What the models of one trial may use together. A limit on money needs the prices of the model.
budgets:
  trial: { requests: 200, time: 30m }
${project.repository === undefined ? '' : outside}`;
}

function suite({ project, models, variant }: FirstFiles): string {
  const [first] = models;
  const { harness, model } = variant ?? { harness: first?.harness ?? 'codex', model: first?.name ?? 'local' };
  const second = `{ name: ${harness}, model: ${model}, harness: ${harness} }`;
  return `# yaml-language-server: $schema=.schemas/suite.schema.json
#
# What to evaluate: each case on each variant. Try it: offsite run evals/suite.yaml

suite:
  id: ${JSON.stringify(project.name)}
  # What every case asks. {{task}} is a variable of the case.
  prompt: "{{task}}"

trials: 1 # of each case on each variant

variants:
  # A harness is the agent, a model is one of offsite.yaml. A program of your own, as the agent:
  # - { name: mine, model: none, harness: command, profile: mine } # \`run\` of profiles.mine in offsite.yaml starts it
  - { name: rehearsal, model: rehearsal, harness: bash }
${variant ? `  - ${second}` : `  # Your own, once offsite.yaml has the model:\n  # - ${second}`}

cases:
  # An example. Remove it, and the variant \`rehearsal\`, which solves only this, when you have a case of your own.
  # \`offsite case add\` makes cases of your repository's commits.
  - id: ${exampleCase.id}
    variables:
      task: Change greeting.txt so that it greets the world, in one line that ends with an exclamation mark.
    # Runs once, before the agent. What it leaves in the workspace is what the agent finds.
    prepare: ${exampleCase.prepare}
    # Runs after the agent, in a fresh sandbox with its workspace. Each command is a step that must exit with 0.
    verify: |
      test "$(wc -l < greeting.txt)" = 1
      grep -i 'world.*!$' greeting.txt
    # Proves that the case can be solved: offsite check evals/suite.yaml
    solution: echo 'hello world!' > greeting.txt
`;
}

const rehearsal = `# yaml-language-server: $schema=.schemas/script.schema.json
#
# A model that answers from this file, to try a suite without a real one. It solves the example case alone.

turns:
  - when: { anyUser: greeting.txt }
    text: I look first.
    run: cat greeting.txt
  - when: { anyUser: greeting.txt }
    run: echo 'hello world!' > greeting.txt
  - when: { anyUser: greeting.txt }
    text: The greeting is written.
otherwise: I answer from evals/rehearsal.yaml, which knows the case greeting alone. I did nothing.
`;

/** A map on one line. */
function inline(config: Record<string, string>): string {
  return stringify(config, { collectionStyle: 'flow', lineWidth: 0 }).trim();
}
