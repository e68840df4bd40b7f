import type { Permission } from '../../contract/identity.ts';
import { refuse } from '../api-error.ts';
import type { KeyStore, Principal } from '../store/keys.ts';
import type { ServiceRequest } from './service-request.ts';

/** The caller, by the key in `Authorization: Bearer`. Throws a 401 that says where to authenticate. */
export function authenticate(request: ServiceRequest, keys: KeyStore): Principal {
  const header = request.headers.get('authorization');
  const secret = header?.match(/^Bearer +([\x21-\x7e]+) *$/i)?.[1];
  if (!secret) throw unauthorized(request, 'This operation needs Authorization: Bearer with an API key.');
  const principal = keys.find(secret);
  // One message for an unknown key and a revoked one: only the key's holder may know the difference.
  if (!principal) throw unauthorized(request, 'The API key is unknown or no longer active.', 'invalid_token');
  return principal;
}

export function authorize(principal: Principal, permission: Permission | undefined): void {
  if (permission === undefined || principal.permissions.has(permission)) return;
  throw refuse(403, `The API key lacks the permission ${permission}.`);
}

/** RFC 6750 challenge. `resource_metadata` is from RFC 9728: the URL that says how to authenticate. */
function unauthorized(request: ServiceRequest, message: string, error?: string) {
  const metadata = new URL(resourceMetadataPath, request.url).href;
  const challenge = [
    'Bearer realm="offsite"',
    ...(error
      ? [
          `error="${error}"`,
          'error_description="make a key on the machine of the service: offsite service keys create --data-folder FOLDER"',
        ]
      : []),
    `resource_metadata="${metadata}"`,
  ];
  return refuse(401, message, { 'www-authenticate': challenge.join(', ') });
}

export const resourceMetadataPath = '/.well-known/oauth-protected-resource';

/**
 * RFC 9728: how to authenticate here. There is no authorization server; keys are made on the machine that
 * runs the service.
 */
export function resourceMetadata(request: ServiceRequest) {
  return {
    resource: new URL('/', request.url).href,
    resource_name: 'Offsite embedded Eval Service. Make an API key with: offsite service keys create',
    bearer_methods_supported: ['header'],
  };
}
