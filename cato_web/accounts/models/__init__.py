"""The models of accounts."""

from cato_web.accounts.models.api_tokens import ApiToken, IdempotencyKey
from cato_web.accounts.models.audit import AuditEntry
from cato_web.accounts.models.jobs import EXPORTS, AccountDeletion, ExportJob
from cato_web.accounts.models.sign_in import Identity, LoginSession, OneTimeLink
from cato_web.accounts.models.users import User
from cato_web.accounts.second_factor.models import AuthenticatorApp, Passkey, RecoveryCode
