import { networkProblems } from '../suite/case-network.ts';
import type { PlannedCase, Sandbox } from '../suite/plan.ts';
import { type Obstacle, Remarks } from './supported.ts';

/** Which hosts a task asks for that a sandbox does not permit, each place once. */
export function networkObstacles(
  { local }: PlannedCase,
  sandbox: Pick<Sandbox, 'network' | 'hosts'>,
): readonly Obstacle[] {
  const remarks = new Remarks();
  for (const { kind, at, hosts } of networkProblems(local, sandbox))
    remarks.uses(kind === 'missing' ? 'unpermitted-host' : 'mixed-networks', {
      ...at,
      message: hosts.join(', '),
    });
  return remarks.obstacles;
}
