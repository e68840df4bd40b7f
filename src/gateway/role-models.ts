import type { ModelRole, SessionRequest } from './gateway.ts';
import { GatewayRefusal } from './room.ts';
import type { ServedModel } from './served-model.ts';

/** The models that each role of a session may use. */
export interface RoleModels {
  /** Finds a model by its exact name or alias. Throws a {@link GatewayRefusal} (404) for any other. */
  named(role: ModelRole, name: string): ServedModel;
  /** The default model of a role. Throws a {@link GatewayRefusal} if the role has none. */
  first(role: ModelRole): ServedModel;
  /** Names and aliases. */
  namesOf(role: ModelRole): string[];
  all(): ServedModel[];
}

export function roleModels(
  asked: SessionRequest['models'],
  served: (name: string) => ServedModel,
): RoleModels {
  const byRole = new Map<string, ServedModel[]>();
  for (const [role, names] of Object.entries(asked)) byRole.set(role, names.map(served));
  const namesOf = ({ name, config }: ServedModel) => [name, ...config.aliases];
  const of = (role: ModelRole) => byRole.get(role) ?? [];
  return {
    named(role, name) {
      const models = of(role);
      const model =
        models.find((one) => one.name === name) ?? models.find((one) => namesOf(one).includes(name));
      if (model) return model;
      const known = models.flatMap(namesOf).join(', ') || 'none';
      throw new GatewayRefusal(
        404,
        'MODEL_NOT_FOUND',
        `there is no model ${JSON.stringify(name.slice(0, 200))} for this trial; there is: ${known}`,
      );
    },
    first(role) {
      const [model] = of(role);
      if (model) return model;
      throw new GatewayRefusal(404, 'MODEL_NOT_FOUND', `this trial has no model for the role ${role}`);
    },
    namesOf: (role) => of(role).flatMap(namesOf),
    all: () => [...new Set([...byRole.values()].flat())],
  };
}
