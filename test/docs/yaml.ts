import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { parse } from 'yaml';
import type { z } from 'zod';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { keysAt } from '../../src/suite/schema-problems.ts';
import { ScriptFile } from '../../src/suite/script-file.ts';
import { SuiteFile } from '../../src/suite/suite-file.ts';

// It imports JSON as bundlers allow it, and Node does not.
registerHooks({
  load(url, context, next) {
    const isJson = url.includes('/@actions/workflow-parser/') && url.endsWith('.json');
    return next(url, isJson ? { ...context, importAttributes: { type: 'json' } } : context);
  },
});
const { NoOperationTraceWriter, parseWorkflow } = await import('@actions/workflow-parser');

type Content = Record<string, unknown>;

interface Kind {
  name: string;
  keys: readonly string[];
  schema: z.ZodType;
  /** The whole file of which this is a part. */
  whole: (part: Content) => unknown;
}

const around = {
  suite: { id: 's', prompt: '{{task}}' },
  variants: [{ model: 'm', harness: 'h' }],
};
const aCase = { id: 'a' };

/** The files of Offsite, of which pages show all or a part. */
const kinds: readonly Kind[] = [
  { name: 'a scripted model', keys: keysAt(ScriptFile, []), schema: ScriptFile, whole: (part) => part },
  { name: 'offsite.yaml', keys: keysAt(ConfigFile, []), schema: ConfigFile, whole: (part) => part },
  {
    name: 'a suite',
    keys: keysAt(SuiteFile, []),
    schema: SuiteFile,
    whole: (part) => ({ ...around, ...(part.tasks === undefined && { cases: [aCase] }), ...part }),
  },
  {
    name: 'a case',
    keys: keysAt(SuiteFile, ['cases', 0]),
    schema: SuiteFile,
    whole: (part) => ({ ...around, cases: [{ ...aCase, ...part }] }),
  },
];

/** What is wrong with a YAML block that shows a file of Offsite, or a part of one; empty if nothing is. */
export function yamlProblems(text: string): string[] {
  const content = parse(text) as Content;
  const keys = Object.keys(content);
  const kind = kinds.find((each) => keys.every((key) => each.keys.includes(key)));
  if (kind === undefined) return [`no file of Offsite has all of these keys: ${keys.join(', ')}`];
  const { error } = kind.schema.safeParse(kind.whole(content));
  return (error?.issues ?? []).map(({ path, message }) => `as ${kind.name}: ${path.join('.')}: ${message}`);
}

/** What GitHub says about a workflow; empty if nothing is wrong. */
export function workflowProblems(text: string): string[] {
  const { context } = parseWorkflow({ name: 'workflow.yaml', content: text }, new NoOperationTraceWriter());
  return context.errors.getErrors().map(({ message }) => message);
}

/** What GitLab's schema says about a pipeline; empty if nothing is wrong. */
export async function gitlabProblems(text: string): Promise<string[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-gitlab-'));
  await writeFile(join(folder.path, '.gitlab-ci.yml'), text);
  const options = { cwd: folder.path, preferLocal: true, localDir: import.meta.dirname };
  await execa('git', ['init', '--quiet'], options);
  await execa('git', ['remote', 'add', 'origin', 'git@gitlab.example:a/evals.git'], options);
  const { exitCode, all } = await execa('gitlab-ci-local', ['--list'], {
    ...options,
    reject: false,
    all: true,
  });
  const problems = all.split('\n').filter((line) => line.includes('•'));
  return exitCode === 0 || problems.length > 0 ? problems : [all];
}

/** The shell commands of a pipeline of any CI system. */
export function scriptsOf(text: string): string[] {
  const found: string[] = [];
  const look = (value: unknown, key = ''): void => {
    if (typeof value === 'string' && ['run', 'script', 'commands'].includes(key)) found.push(value);
    else if (Array.isArray(value)) for (const each of value) look(each, key);
    else if (typeof value === 'object' && value !== null)
      for (const [name, each] of Object.entries(value)) look(each, name);
  };
  look(parse(text));
  return found;
}
