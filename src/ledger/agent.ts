import { randomUUID } from 'node:crypto';
import type { Records } from './records.ts';

/**
 * The name by which services know the agents of this data folder, made when it is first asked for. The
 * processes of a data folder share it: its locks keep them from running the same trial.
 */
export function agentIdOf(records: Records): string {
  return records.transaction(() => {
    const known = records.get('SELECT id FROM agent');
    if (known) return String(known.id);
    const id = `agent-${randomUUID()}`;
    records.run('INSERT INTO agent (id) VALUES (?)', id);
    return id;
  });
}
