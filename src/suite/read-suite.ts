import { existsSync } from 'node:fs';
import { z } from 'zod';
import { inputError } from '../base/offsite-error.ts';
import { ConfigFile } from './config-file.ts';
import { BadFile, type FileIssue, issueIn } from './file-issues.ts';
import { SuiteFile } from './suite-file.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/** Reads a suite file. Throws {@link BadFile} with every value that does not match the schema. */
export function readSuite(file: string): YamlFile<SuiteFile> {
  if (file.endsWith('.toml'))
    throw new BadFile([
      issueIn(file, 'is no suite; for a task of Harbor, name its folder: offsite run --tasks FOLDER'),
    ]);
  if (/^(batch|set)_[\w-]+$/.test(file) && !existsSync(file))
    throw inputError(
      'FILE_UNREADABLE',
      `${file} looks like the id of a batch or a set; name the file of a suite`,
      { hint: `Show it with \`offsite show ${file}\`, or continue it with \`offsite resume ${file}\`.` },
    );
  try {
    return readYamlFile(file, SuiteFile, { others: { 'offsite.yaml': ConfigFile } });
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    const foreign = foreignIssue(file);
    throw foreign ? new BadFile([foreign]) : error;
  }
}

/** What to say of a file of another program, in place of a problem for each of its keys. */
function foreignIssue(file: string): FileIssue | undefined {
  const whole = readWhole(file);
  const has = (...keys: string[]) => keys.some((key) => whole && Object.hasOwn(whole.value, key));
  if (!whole || has('suite', 'variants')) return undefined;
  if (has('turns') && !has('cases'))
    return whole.issue(
      [],
      'is the script of a model, not a suite: models.NAME.scripted of offsite.yaml names it, and a variant of a suite ' +
        'the model',
    );
  if (has('models', 'profiles', 'sandboxes', 'daemon', 'service') && !has('cases', 'tasks'))
    return whole.issue(
      [],
      'is a configuration (models, profiles, sandboxes), not a suite; name the suite: Offsite finds the ' +
        'configuration beside it, or takes --config FILE',
    );
  if (!(has('prompts') && has('providers', 'tests')) && !(has('providers') && has('tests'))) return undefined;
  return whole.issue(
    [],
    'is a configuration of promptfoo, not a suite: `offsite init` writes a first suite here, and in it ' +
      'prompts become suite.prompt, providers become variants, tests become cases, and llm-rubric becomes judge',
  );
}

function readWhole(file: string): YamlFile<Record<string, unknown>> | undefined {
  try {
    return readYamlFile(file, z.record(z.string(), z.unknown()));
  } catch (error) {
    if (error instanceof BadFile) return undefined;
    throw error;
  }
}
