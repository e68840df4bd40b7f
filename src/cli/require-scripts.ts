import { ownName } from '../gateway/open-gateway.ts';
import type { Config } from '../suite/config-file.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { ScriptFile } from '../suite/script-file.ts';
import { readYamlFile } from '../suite/yaml-file.ts';

/**
 * Reads the scripts of those models that have one. Throws `BadFile` with the problems of all of them, or an
 * `input` error if a file cannot be read.
 */
export function requireScripts(names: readonly string[], models: Config['models']): void {
  const issues: FileIssue[] = [];
  for (const name of new Set(names.map((asked) => ownName(asked, models)))) {
    const model = models[name];
    if (!model || !('scripted' in model)) continue;
    try {
      readYamlFile(model.scripted, ScriptFile);
    } catch (error) {
      if (!(error instanceof BadFile)) throw error;
      issues.push(...error.issues);
    }
  }
  if (issues.length > 0) throw new BadFile(issues);
}
