import type { FileIssue } from '../../suite/file-issues.ts';
import { isHostPattern } from '../../suite/hosts/host-pattern.ts';
import type { Path } from '../../suite/yaml-file.ts';
import type { TaskDocument } from '../document.ts';
import type { Remarks } from '../supported.ts';
import type { TaskNetwork } from '../task.ts';
import type { TaskFolder } from '../task-folder.ts';

/** What a reader of a task's parts works with. */
export interface HarborSource {
  folder: TaskFolder;
  /** The task's `task.toml`. */
  document: TaskDocument;
  remarks: Remarks;
}

interface NetworkTable {
  network_mode?: 'public' | 'no-network' | 'allowlist' | undefined;
  allowed_hosts?: string[] | undefined;
}

/** The network that a table asks for; undefined if it says nothing. */
export function readNetwork(
  { document, remarks }: HarborSource,
  { network_mode: mode, allowed_hosts: hosts }: NetworkTable,
  path: Path,
): TaskNetwork | undefined {
  const at = (key: string, message = ''): FileIssue => document.issue([...path, key], message);
  if (mode === undefined && hosts === undefined) return undefined;
  if (mode === 'allowlist' || (mode === undefined && hosts !== undefined)) {
    const place = at(mode === undefined ? 'allowed_hosts' : 'network_mode');
    remarks.uses('listed-hosts', place);
    for (const [index, host] of (hosts ?? []).entries())
      if (!isHostPattern(host))
        remarks.uses('unknown-host', document.issue([...path, 'allowed_hosts', index], host));
    return { mode: 'allowlist', hosts: hosts ?? [], at: place };
  }
  if (hosts !== undefined && hosts.length > 0)
    remarks.note('not-used', at('allowed_hosts', `is ignored, because network_mode is ${mode}`));
  if (mode === 'no-network') return { mode: 'none', at: at('network_mode') };
  remarks.uses('open-network', at('network_mode'));
  return { mode: 'public' };
}

/** A value stands for a variable of the machine if all of it is `${NAME}` or `${NAME:-text}`. */
const fromHost = /^\$\{([A-Za-z_]\w*)(?::-(.*))?\}$/s;

/** Variables of the machine are not passed on: those without a default are obstacles of the task. */
export function readVariables(
  { document, remarks }: HarborSource,
  variables: Readonly<Record<string, string>>,
  path: Path,
): Record<string, string> {
  const read = (key: string, value: string): string => {
    const [, name, otherwise] = fromHost.exec(value) ?? [];
    if (name === undefined) return value;
    const feature = otherwise === undefined ? 'host-variable' : 'host-variable-default';
    remarks.uses(feature, document.issue([...path, key], value));
    return otherwise ?? '';
  };
  return Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, read(key, value)]));
}
