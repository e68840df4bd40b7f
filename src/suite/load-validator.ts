import { basename, dirname, relative } from 'node:path';
import type { Validator } from '../contract/definition.ts';
import type { CaseSource } from './suite-file.ts';
import type { Path, SuiteReader } from './suite-reader.ts';
import type { Variables } from './variables.ts';

/** A case's validator with its source and the files beside it. Its problems are reported. */
export function plannedValidator(
  entry: NonNullable<CaseSource['validator']>,
  variables: Variables,
  path: Path,
  reader: SuiteReader,
): Validator {
  const file = 'file' in entry ? entry.file : undefined;
  const text = 'file' in entry ? { file: entry.file } : entry.source;
  const folder = dirname(file ?? '.');
  const validator: Validator = {
    name: entry.name ?? (file === undefined ? 'validator' : basename(file)),
    source: reader.script(text, variables, path),
  };
  if (entry.runsIn === 'same' && validator.source.startsWith('#!')) {
    reader.report(
      [...path, 'runsIn'],
      'a program would start with what the agent left in its sandbox; make it a module, or remove runsIn',
    );
  }
  if ((reader.source.judges ?? []).length === 0 && asksJudge(validator.source))
    reader.report(path, 'asks a judge, and the suite has none: list models of offsite.yaml under `judges`');
  if (entry.capture !== undefined) validator.capture = entry.capture;
  if (entry.manifest) validator.manifest = entry.manifest.map((name, index) => ({ index, name }));
  if (entry.sourceFiles) {
    validator.sourceFiles = entry.sourceFiles.map((sourceFile, index) => {
      const beside = relative(folder, sourceFile);
      return {
        path: beside.startsWith('..') ? basename(sourceFile) : beside,
        content: reader.text({ file: sourceFile }, [...path, 'sourceFiles', index]),
      };
    });
  }
  return validator;
}

/** Whether a module calls `judge()` of a validation, as far as its text shows. A program cannot. */
function asksJudge(source: string): boolean {
  const code = source.replaceAll(/^[ \t]*(?:\/\/|\/?\*).*$/gm, '');
  const isOwn = /function judge\b|(?:const|let|var) judge\b/.test(code);
  return !source.startsWith('#!') && !isOwn && /(?<![\w$])judge\(\s*\{/.test(code);
}
