import { resolve } from 'node:path';
import { BadFile } from '../../suite/file-issues.ts';
import { isBelow } from '../task-folder.ts';
import type { ServiceTable } from './compose-file.ts';
import { interpolated } from './interpolate.ts';
import type { ComposeSource } from './source.ts';

/** The variables that the `env_file` of a service has. Later files win. */
export function readEnvFiles(
  { document, remarks, folder, project, variables }: ComposeSource,
  name: string,
  { env_file: given }: ServiceTable,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const file of given === undefined ? [] : [given].flat()) {
    const { path, required = true } = typeof file === 'string' ? { path: file } : file;
    const at = (message: string) => document.issue(['services', name, 'env_file'], message);
    const from = resolve(project, path);
    if (!isBelow(folder.path, from)) {
      remarks.uses('outside-path', at(path));
      continue;
    }
    const names = from.slice(folder.path.length + 1).split('/');
    if (!folder.isFile(...names)) {
      if (required) throw new BadFile([at(`there is no file ${from}`)]);
      continue;
    }
    for (const [key, value, isLiteral] of envLines(folder.text(...names))) {
      const onUnset = (variable: string) => remarks.uses('compose-variable', at(`${variable} in ${path}`));
      const known = { ...variables, ...found };
      found[key] = isLiteral ? value : String(interpolated(value, { variables: known, onUnset }));
    }
  }
  return found;
}

type EnvLine = [key: string, value: string, isLiteral: boolean];

/** Lines `KEY=value`. A value in single quotes is taken as it is; after others, ` #` begins a comment. */
function envLines(text: string): EnvLine[] {
  return text.split('\n').flatMap((line): EnvLine[] => {
    const [, key, rest = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined) return [];
    const [, single] = /^'([^']*)'/.exec(rest) ?? [];
    if (single !== undefined) return [[key, single, true]];
    const [, double] = /^"((?:[^"\\]|\\.)*)"/.exec(rest) ?? [];
    const value = double?.replaceAll(/\\(.)/g, (_, each) => (each === 'n' ? '\n' : each));
    return [[key, value ?? rest.replace(/(^|\s+)#.*$/, ''), false]];
  });
}
